from probe_patch.runtime.capture.forwards cimport Call
cdef class Selection:
    cdef object _first, _last
    cdef bint _is_open, _takes_all, _opens_modules
    cdef tuple _parts
    cdef set _flowed
    cdef object _begun_before
    cpdef bint begin(self, Call call) except -1
    cpdef end(self, Call call)
    cpdef bint may_take_backward(self, Call call) except -1
    cpdef bint begin_backward(self, Call call) except -1
    cpdef end_backward(self, Call call)
    cpdef bint takes_parameters_of(self, object module) except -1
