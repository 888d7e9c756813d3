from probe_patch.runtime.capture.forms cimport Look, Nulls, Taken
from probe_patch.runtime.number_texts cimport NumberForm
from probe_patch.runtime.stats.checksums.table cimport ChecksumTable
from probe_patch.runtime.stats.row_numbers cimport RowNumbers
from probe_patch.runtime.stats.table cimport StatisticsTable
from probe_patch.runtime.json_text cimport JsonStyle
cdef class Contents:
    cpdef take(self, object values, object kind)
    cpdef Look take_whole(self, object tensor)
    cpdef take_again(self, long place)
    cpdef launch(self)
    cpdef Taken read(self, JsonStyle style)
    cpdef Nulls nothing(self)
cdef class Statistics(Contents):
    cdef list _columns
    cdef NumberForm _form
    cdef bint _counts
    cdef StatisticsTable _table
    cdef RowNumbers _rows
cdef class WithCrc(Contents):
    cdef Contents _numbers
    cdef ChecksumTable _table
    cdef object _problems
    cdef list _checksums
    cdef object _checksum_of(self, object tensor)
cdef class Xor(Contents):
    cdef ChecksumTable _table
    cdef list _checksums
