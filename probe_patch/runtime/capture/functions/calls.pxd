cimport cython
from probe_patch.runtime.capture.frames cimport outside
from probe_patch.runtime.capture.forwards cimport Call
from probe_patch.runtime.capture.nesting cimport Nesting
from probe_patch.runtime.capture.session cimport Session
cdef class FunctionCalls:
    cdef Session _session
    cdef public object take_inputs
    cpdef Nesting here(self)
    cpdef bint are_recorded(self, Nesting here) except -1
    @cython.locals(session=Session, call=Call)
    cpdef Call begin(self, Nesting here, object name, object take, tuple args, dict kwargs)
    cpdef abandon(self, Nesting here, Call call)
    @cython.locals(session=Session)
    cpdef end(self, Nesting here, Call call, object output)
    cpdef failed(self, str kind, object error)
