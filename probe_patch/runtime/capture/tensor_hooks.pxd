cimport cython
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.tracing cimport is_compiling
cdef object _ENGINE
cpdef bint is_backward_running() except -1
cdef class TensorHook:
    cpdef take(self, Session session, object gradient)
    cpdef _take(self, object gradient)
cdef class GradientHook(TensorHook):
    cdef public Session _session
    cdef public object _hooks, _tensor
    cpdef put_on(self, object tensor)
    cpdef remove(self)
cpdef object make_hooks(object tensor, object node)
cpdef unmake_hooks(object tensor)
