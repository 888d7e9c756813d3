cimport cython
from probe_patch.runtime.capture.frames cimport FrameType
from probe_patch.runtime.capture.functions.by_code cimport ByCode
cdef ByCode _calls
cdef class Reading:
    cdef tuple _positional, _keywords, _left_out
    cpdef object of(self, object values)
cpdef object call_at(FrameType frame)
