from libc.stdint cimport int64_t

cdef class RowNumbers:
    cdef int64_t* _numbers
    cdef Py_ssize_t _count, _most
    cpdef append(self, int64_t number)
    cpdef int64_t at(self, Py_ssize_t place) except? -1
