cimport cython
from probe_patch.runtime.capture.forwards cimport Call
cdef object _get_sequence_number
cdef class Backward:
    cdef public Call call
    cdef public list gradients, behind, numbers
    cdef public long inputs, outputs, since, watched
    cdef public object is_taken
    cdef public long shares
    @cython.locals(behind=list, numbers=list)
    cdef _look_at(self, list inputs)
    cpdef take(self)
    cpdef arrives(self, long output, object record)
    cpdef passes_on(self, long number, object record)
    cpdef dict record(self, object wanted)
