cimport cython
from probe_patch.runtime.ascii_text cimport AsciiText, Listed
from probe_patch.runtime.capture.forms cimport Look, Taken
from probe_patch.runtime.json_text cimport JsonStyle
from probe_patch.runtime.stats.row_numbers cimport RowNumbers
cdef long DEVICES, FLOAT_COLUMNS
cdef tuple _AROUND_FOUR
cdef class NumberForm:
    cdef public list members
    cdef public str nulls
    cdef public bint has_counts, is_all_four
cdef class NumberTexts(Taken):
    cdef NumberForm _form
    cdef RowNumbers _rows
    cdef list _floats
    cdef object _readings
    cdef JsonStyle _style
    cdef bint _is_whole
    @cython.locals(row=long, form=NumberForm)
    cpdef add(self, AsciiText text, long place, Look look)
    @cython.locals(row=long)
    cpdef object counts(self, long place)
    cdef bint _has(self, long row) except -1
    @cython.locals(form=NumberForm, found=list, column=long, key=str)
    cdef _add_members(self, AsciiText text, long row, Look look, object kind)
