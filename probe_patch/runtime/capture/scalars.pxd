cdef object _LEAST, _MOST, _TRUE, _FALSE
cdef long _MOST_WRITTEN, _LONGEST_WRITTEN
cdef dict _INTEGERS, _FLOATS, _STRINGS
cpdef object scalar_record(object value, object keyword)
cdef object _integer_record(object value)
cdef object _float_record(object value)
cdef object _string_record(object value)
cdef object _whole_number(object value)
cdef object _distributed_record(object value)
cdef object _numpy_record(object value)
