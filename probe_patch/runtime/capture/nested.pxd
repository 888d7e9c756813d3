cimport cython
@cython.locals(tensors=list)
cpdef list tensors_in(object values)
