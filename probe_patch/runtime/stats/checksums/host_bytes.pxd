from probe_patch.runtime.stats.host_tensors cimport look_function

cdef class HostBytes:
    cdef look_function _look
    cpdef object of(self, object tensor)
