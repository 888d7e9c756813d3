from probe_patch.runtime.stats.checksums.host_bytes cimport HostBytes
cdef HostBytes _bytes
cpdef object crc32(object values)
