cimport cython
from probe_patch.runtime.capture.frames cimport FrameType
cdef class Unchanged:
    cdef object _frame
    cdef dict _known
    cpdef dict in_hook(self, object frame)
    cpdef dict in_function(self, FrameType frame)
cpdef bint nothing_comes_between(object module) except -1
cdef bint _is_torchs(object function) except -1
cdef bint _no_saved_tensors_hooks() except -1
