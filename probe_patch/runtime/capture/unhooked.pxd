cimport cython
from probe_patch.runtime.capture.forward_hooks cimport vars
cdef class Unhooked:
    cdef dict _is_copied_by_state
    @cython.locals(own=dict, kind=type)
    cpdef add(self, object module, object reference)
    @cython.locals(own=dict)
    cpdef take_off(self, object module)
cdef class Method:
    cdef object _module
    cdef readonly Unhooked of
cdef class State(Method):
    pass
cdef class Twin(Method):
    pass
