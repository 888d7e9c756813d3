cimport cython
cdef class Look:
    cdef public str before, after
    cdef public object kind
    cdef public bint is_scalar, has_floats
@cython.freelist(64)
cdef class TensorRecord:
    cdef public long number
@cython.locals(record=TensorRecord)
cpdef TensorRecord tensor_record(long number)
cdef class Taken:
    cpdef str text(self, long place, Look look, str end)
    cpdef object counts(self, long place)
cdef class Nulls(Taken):
    cdef public str before, after
    cpdef str text(self, long place, Look look, str end)
cdef class TensorTexts:
    cdef long _first
    cdef list _looks
    cdef dict _files
    cdef Taken _taken
    @cython.locals(place=long, end=str)
    cpdef str text(self, TensorRecord record)
    cpdef object counts(self, TensorRecord record)
