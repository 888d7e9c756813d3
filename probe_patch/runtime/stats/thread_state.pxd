from libc.stdint cimport int64_t

ctypedef bint (*is_function)() noexcept nogil
ctypedef void (*set_gradients_function)(bint) noexcept nogil
ctypedef int64_t (*length_function)() noexcept nogil
ctypedef int (*disabled_function)() noexcept nogil
ctypedef void (*disable_function)(int) noexcept nogil

cdef class ThreadState:
    cdef is_function _has_gradients, _is_inference
    cdef set_gradients_function _set_gradients
    cdef length_function _dispatch_modes
    cdef disabled_function _disabled
    cdef disable_function _disable
    cpdef int leave(self) except -2
    cpdef put_back(self, int earlier)
