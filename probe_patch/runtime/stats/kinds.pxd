cpdef object kind_of_dtype(object dtype)
cpdef bint is_readable(object values) except -1
cdef object _end_of(object values)
cpdef object private_format(object values)
