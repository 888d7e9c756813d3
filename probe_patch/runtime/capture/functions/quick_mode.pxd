from probe_patch.runtime.capture.functions.seen cimport SeenCalls

cdef class QuickMode:
    cdef public SeenCalls seen
