from probe_patch.runtime.capture.functions.by_code cimport ByCode

cdef ByCode _calls
cdef class Reading:
    cdef tuple _keywords, _left_out, _positional
    cpdef object of(self, object values)
cpdef object call_at(object frame)
