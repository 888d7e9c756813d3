cdef class Lines:
    cdef object _folder, _problems, _pid
    cdef public object _file
    cdef public list _kept
    cdef long _characters, _bytes
    cdef bint _may_move
    cpdef add(self, object lines)
    cdef _move(self)
