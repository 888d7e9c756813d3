cimport cython
cdef class JsonStyle:
    cdef str _quote
    cpdef str number(self, object value)
    @cython.locals(text=str, texts=list, before=long, at=long, place=long)
    cpdef list numbers(self, list values)
    cpdef str leaf(self, object value)
