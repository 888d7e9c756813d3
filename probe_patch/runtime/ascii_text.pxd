cimport cython
from libc.stdint cimport uint64_t

cdef class Listed:
    cdef bytes _whole
    cdef bytearray _room
    cdef const char* _first
    cdef Py_ssize_t* _begins
    cdef Py_ssize_t _count
    cdef readonly list nulls
    cdef dict _instead
    cpdef replace(self, Py_ssize_t place, str text)

@cython.final
cdef class AsciiText:
    cdef bytearray _room
    cdef char* _first
    cdef Py_ssize_t _most
    cdef readonly Py_ssize_t size
    cdef int _make_room(self, Py_ssize_t more) except -1
    cpdef int add(self, str piece) except -1
    cpdef int add_string(self, object value) except -1
    cpdef int add_inside(self, object value) except -1
    cpdef int add_key(self, str before, object name) except -1
    cpdef int add_integer(self, uint64_t value) except -1
    cpdef int add_hexadecimal(self, uint64_t value, int digits) except -1
    cpdef int add_listed(self, tuple around, Listed values, Py_ssize_t place) except -1
    cpdef int cut(self, Py_ssize_t size) except -1
    cpdef object view(self)
