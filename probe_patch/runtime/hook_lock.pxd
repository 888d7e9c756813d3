cdef class HookLock:
    cdef void* _lock
    cdef unsigned long _owner
    cdef long _depth
    cpdef bint take(self) except -1
    cpdef bint wait(self, double seconds) except -1
    cpdef give_back(self)
    cdef bint _wait(self, long long microseconds) except -1
