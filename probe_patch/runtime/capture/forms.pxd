cimport cython
cdef class Look:
    cdef public str before, after
    cdef public object kind
    cdef public bint is_scalar, has_floats
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
    cpdef str text(self, long record)
    cpdef object counts(self, long record)
