cpdef bint is_compiled(object module) except -1
cpdef bint is_wrapper(object module) except -1
cpdef bint is_compiled_in_place(object module) except -1
