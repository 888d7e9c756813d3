cimport cython
from probe_patch.runtime.capture.nesting cimport Call
cdef object _get_sequence_number
cdef class Backward:
    cdef public Call call
    cdef public list arrived, passed_on, behind, numbers
    cdef public long since, watched
    cdef public object is_taken
    cdef public long shares
    @cython.locals(behind=list, numbers=list)
    cdef _look_at(self, list inputs)
    cpdef dict record(self, object wanted)
