from probe_patch.runtime.capture.forms cimport Look, Taken
cdef class CrcTexts(Taken):
    cdef Taken _numbers
    cdef list _checksums
    cpdef str text(self, long place, Look look, str end)
    cpdef object counts(self, long place)
cdef class XorTexts(Taken):
    cdef list _checksums
    cpdef str text(self, long place, Look look, str end)
cpdef str crc_member(object value)
cpdef str xor_member(object value)
