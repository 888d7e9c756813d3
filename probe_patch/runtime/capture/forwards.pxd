cdef object ABSENT
from probe_patch.runtime.capture.names cimport CallName
cdef class ForwardPass:
    cdef public long micro_batch
    cdef public bint has_gradients
cdef class Call:
    cdef public CallName name
    cdef public object handled
    cdef public long number
    cdef public Call parent
    cdef public ForwardPass during
    cdef public bint is_sealed, is_taken, has_backward
    cdef public object input_args, input_kwargs, output, parameters
    cdef public object stack
    cdef public object frame
    cdef public object flow
    cpdef end(self)
    cpdef dict give_record(self)
