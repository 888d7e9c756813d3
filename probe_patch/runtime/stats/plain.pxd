cpdef object plain_values(object tensor)
