cimport cython
from probe_patch.runtime.ascii_text cimport AsciiText
cdef list _spare
cdef AsciiText _room()
cdef class Lines:
    cdef object _folder, _problems, _pid
    cdef public object _file
    cdef readonly AsciiText _text
    cdef Py_ssize_t _whole, _bytes
    cdef bint _may_move
    @cython.locals(text=AsciiText)
    cpdef AsciiText begin(self)
    cpdef end(self)
    cdef _move(self)
