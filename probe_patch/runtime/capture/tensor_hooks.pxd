cimport cython
from probe_patch.runtime.capture.session cimport Session
cdef object is_compiling
cdef class GradientHook:
    cdef object __weakref__
    cdef public Session _session
    cdef public object _hooks, _tensor
    cpdef remove(self)
    @cython.locals(session=Session)
    cpdef take(self, object gradient)
    cpdef _take(self, object gradient)
cpdef object latest_hook(object tensor)
