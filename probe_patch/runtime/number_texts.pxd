cimport cython
from probe_patch.runtime.capture.forms cimport Look, Taken
from probe_patch.runtime.json_text cimport JsonStyle
cdef long DEVICES, FLOAT_COLUMNS
cdef class NumberForm:
    cdef str _members
    cdef object _columns
    cdef public str nulls
    cdef public bint has_counts, is_all_four
    cpdef str members(self, tuple summary, object counts)
cdef class NumberTexts(Taken):
    cdef NumberForm _form
    cdef list _rows, _floats
    cdef object _readings
    cdef JsonStyle _style
    cdef bint _is_whole
    @cython.locals(row=long, at=long, form=NumberForm, texts=list)
    cpdef str text(self, long place, Look look, str end)
    @cython.locals(row=long)
    cpdef object counts(self, long place)
    cdef bint _has(self, long row) except -1
    @cython.locals(at=long, texts=list)
    cdef tuple _summary(self, long row, Look look, object kind)
