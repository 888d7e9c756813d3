from probe_patch.runtime.ascii_text cimport AsciiText
from probe_patch.runtime.capture.forms cimport Look, Taken
cdef class CrcTexts(Taken):
    cdef Taken _numbers
    cdef list _checksums
    cpdef add(self, AsciiText text, long place, Look look)
    cpdef add_last(self, AsciiText text, long place)
    cpdef object counts(self, long place)
cdef class XorTexts(Taken):
    cdef list _checksums
    cpdef add(self, AsciiText text, long place, Look look)
