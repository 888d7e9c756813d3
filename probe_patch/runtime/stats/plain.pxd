cdef object _PARAMETER
cpdef bint is_plain(object value) except -1
cpdef object plain_values(object tensor)
