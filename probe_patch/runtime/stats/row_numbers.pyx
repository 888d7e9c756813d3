"""The numbers of rows, one behind the other: as an object of Python's each would take four times the memory."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport int64_t

cdef enum:
    AT_FIRST = 1024

cdef class RowNumbers:
    """A list of whole numbers of at most 63 bits."""

    def __cinit__(self):
        self._numbers = NULL
        self._count = self._most = 0

    def __dealloc__(self):
        PyMem_Free(self._numbers)

    cpdef append(self, int64_t number):
        cdef Py_ssize_t most
        cdef void* room
        if self._count == self._most:
            most = max(2 * self._most, <Py_ssize_t> AT_FIRST)
            room = PyMem_Realloc(self._numbers, most * sizeof(int64_t))
            if room == NULL:
                raise MemoryError
            self._numbers = <int64_t*> room
            self._most = most
        self._numbers[self._count] = number
        self._count += 1

    cpdef int64_t at(self, Py_ssize_t place) except? -1:
        """The number at a place that there is, counted from 0."""
        if not 0 <= place < self._count:
            raise IndexError("there is no such place")
        return self._numbers[place]
