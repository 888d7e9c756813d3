cimport cython
from probe_patch.runtime.capture.forward_hooks cimport vars
cdef class Unhooked:
    cdef list _put
    cdef dict _is_copied_by_state
    @cython.locals(own=dict, kind=type)
    cpdef add(self, object module, object reference)
    @cython.locals(method=Method)
    cpdef remove(self)
cdef class Method:
    cdef object _module
    cdef take_off(self)
    @cython.locals(own=dict)
    cdef _take_off(self, str name)
cdef class State(Method):
    cdef take_off(self)
cdef class Twin(Method):
    cdef take_off(self)
