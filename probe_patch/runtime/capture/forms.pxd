cimport cython
from probe_patch.runtime.ascii_text cimport AsciiText
cdef class Look:
    cdef public str before, after
    cdef public object kind
    cdef public bint is_scalar, has_floats
@cython.freelist(64)
cdef class TensorRecord:
    cdef public long number
@cython.locals(record=TensorRecord)
cpdef TensorRecord tensor_record(long number)
cdef class TensorList:
    cdef public long first, count
cpdef list tensor_records(TensorList listed)
cdef class Taken:
    cpdef add(self, AsciiText text, long place, Look look)
    cpdef add_last(self, AsciiText text, long place)
    cpdef object counts(self, long place)
cdef class Nulls(Taken):
    cdef public str before, last
    cpdef add(self, AsciiText text, long place, Look look)
    cpdef add_last(self, AsciiText text, long place)
cdef class TensorTexts:
    cdef long _first
    cdef list _looks
    cdef dict _files
    cdef Taken _taken
    cpdef add(self, AsciiText text, TensorRecord record)
    @cython.locals(place=long)
    cpdef add_number(self, AsciiText text, long number)
    cpdef object counts(self, TensorRecord record)
