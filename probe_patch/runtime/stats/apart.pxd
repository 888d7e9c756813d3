from probe_patch.runtime.stats.thread_state cimport ThreadState

cdef ThreadState _quick
cdef int _GRADIENTS
cdef object _DisableTorchFunction, _is_grad_enabled, _is_inference_mode_enabled, _set_grad_enabled, _len_torch_dispatch_stack

cdef class ApartFromTheRun:
    cdef int _earlier
    cdef object _functions, _inference, _modes
    cdef public bint had_gradients, was_in_inference_mode
    cpdef begin(self)
    cpdef end(self)
