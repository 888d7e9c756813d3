from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from probe_patch.runtime.stats.table cimport DeviceRows

cdef enum:
    CODES = 8
    MOST_WORDS = 7
    PLACES_BITS = 8

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

ctypedef struct DLPackExchangeAPI:
    uint32_t major
    uint32_t minor
    void* earlier
    void* allocate
    void* managed_from
    void* managed_to
    void* look
    void* stream

ctypedef struct Met:
    int64_t[MOST_WORDS] key
    int32_t words
    void* description

ctypedef int (*look_function)(void* tensor, DLTensor* out) noexcept
ctypedef uint8_t (*says_function)(void* tensor) noexcept
ctypedef int32_t (*writes_function)(void* tensor, int64_t* out) noexcept
ctypedef void (*measure_function)(const void*, int64_t, int64_t, int64_t*) noexcept nogil
ctypedef int64_t (*measure_strided_function)(const void*, int64_t, const int64_t*, int64_t, int64_t*) noexcept nogil

cdef class HostTensors:
    cdef look_function _look
    cdef measure_function _measure
    cdef measure_strided_function _measure_strided
    cdef Py_ssize_t _handle
    cdef says_function _is_neg
    cdef says_function _requires_grad
    cdef writes_function _storage_size
    cdef writes_function _storage_offset
    cdef int16_t[CODES << 8] _flags
    cdef Met[1 << PLACES_BITS] _lately
    cdef dict _known
    cdef object _describe
    cdef readonly long row
    cpdef object take(self, object tensor, DeviceRows rows)
    cdef bint _is_there(self, object tensor, int64_t extent, int64_t bits) except -1
    cdef object _described(self, object tensor, int64_t* key, int32_t words, uint64_t mixed)
