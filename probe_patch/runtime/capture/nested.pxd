cimport cython
@cython.locals(tensors=list)
cpdef list tensors_in(object values)
cdef bint _may_hold_tensors(object value) except -1
