cimport cython
cdef class Compiled:
    cdef object _kernels
    cdef dict _flags, _codes
    @cython.locals(row=long, calls=list, count=long)
    cpdef measure(self, list values, list kinds, object block, object first)
