cdef class ChecksumTable:
    cdef object _problems
    cdef public dict _devices
    cpdef object crc32(self, object values)
    cpdef object xor64(self, object values)
