cimport cython
from probe_patch.runtime.capture.forwards cimport Call
from probe_patch.runtime.capture.records cimport Recorder
cdef class GradientNow:
    cdef object _gradient, _record
    cdef Recorder _recorder
    cpdef object arrived(self, Call call, long number)
    cpdef object passed_on(self, Call call, long number)
