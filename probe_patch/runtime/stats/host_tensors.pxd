from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint64_t

from probe_patch.runtime.stats.table cimport DeviceRows

cdef enum:
    CODES = 8

ctypedef struct DLTensor:
    void* data
    int32_t device_type
    int32_t device_id
    int32_t ndim
    uint8_t code
    uint8_t bits
    uint16_t lanes
    int64_t* shape
    int64_t* strides
    uint64_t byte_offset

ctypedef int (*look_function)(void* tensor, DLTensor* out) except -1
ctypedef void (*measure_function)(const void*, int64_t, int64_t, int64_t*) noexcept nogil
ctypedef int64_t (*measure_strided_function)(const void*, int64_t, const int64_t*, int64_t, int64_t*) noexcept nogil

cdef class HostTensors:
    cdef look_function _look
    cdef measure_function _measure
    cdef measure_strided_function _measure_strided
    cdef int16_t[CODES << 8] _flags
    cdef dict _known
    cdef object _describe
    cdef readonly long row
    cpdef object take(self, object tensor, DeviceRows rows)
