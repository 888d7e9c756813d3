from probe_patch.runtime.capture.nesting cimport Call
cpdef tuple edge_of(object tensor)
cdef object _get_sequence_number
cdef class Backward:
    cdef public Call call
    cdef public list arrived, passed_on, edges, leaves
    cdef public long since
    cdef public object is_taken
    cdef public long shares
    cpdef dict record(self, object wanted)
