cimport cython
from probe_patch.runtime.ascii_text cimport AsciiText
from probe_patch.runtime.call_names cimport add_backward, add_forward
from probe_patch.runtime.capture.forwards cimport Call
cdef class Told:
    cpdef forward(self, Call call, Call parent)
    cpdef backward(self, Call call, Call parent)
cdef class Enclosures:
    cdef list _calls
    cdef set _dropped, _around
    @cython.locals(call=Call, one=Call, around=set, dropped=set)
    cdef set _find(self)
    @cython.locals(call=Call, around=set)
    cpdef tell(self, Told told, long first, long end)
    @cython.locals(around=Call)
    cdef Call _around_backward(self, Call call)
cdef class Parents(Told):
    cdef public dict found
cdef class ConstructText(Told):
    cdef AsciiText _text
    cdef bint _has_micro_batches
    cdef str _before
    @cython.locals(text=AsciiText)
    cpdef forward(self, Call call, Call parent)
    @cython.locals(text=AsciiText)
    cpdef backward(self, Call call, Call parent)
    cdef _end(self, Call call)
