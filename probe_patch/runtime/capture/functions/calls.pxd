cimport cython
from probe_patch.runtime.capture.frames cimport outside
from probe_patch.runtime.capture.nesting cimport Call, Nesting
from probe_patch.runtime.capture.session cimport Session
cdef class FunctionCalls:
    cdef Session _session
    cdef public object take_inputs
    @cython.locals(session=Session, nesting=Nesting)
    cpdef bint are_recorded_here(self) except -1
    @cython.locals(session=Session, nesting=Nesting, call=Call)
    cpdef Call begin(self, object name, object take, tuple args, dict kwargs)
    @cython.locals(session=Session)
    cpdef abandon(self, Call call)
    @cython.locals(session=Session, nesting=Nesting)
    cpdef end(self, Call call, object output)
    cpdef failed(self, str kind, object error)
