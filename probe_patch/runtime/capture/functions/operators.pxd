cimport cython
from probe_patch.runtime.capture.frames cimport FrameType
from probe_patch.runtime.capture.functions.by_code cimport ByCode
cdef ByCode _operators
@cython.locals(running=FrameType)
cpdef object operator_at(FrameType frame, object function)
cdef bint _hands_on(FrameType frame, object function) except -1
