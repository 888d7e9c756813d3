cimport cython
from probe_patch.runtime.ascii_text cimport Listed
cdef class JsonStyle:
    cdef str _quote
    cdef dict _known
    cpdef str number(self, object value)
    cpdef str leaf(self, object value)
    @cython.locals(text=str)
    cdef str _constant(self, object value)
