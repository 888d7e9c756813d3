cdef class ForwardHooks:
    cdef object _number
    cdef list _modules, _handles
    cdef _take_off(self, object module)
