cimport cython
from probe_patch.runtime.capture.backward cimport Backward
from probe_patch.runtime.capture.nesting cimport Call
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.shares cimport Share
cdef object _get_level
cdef class Gradients:
    cdef Session _session
    cdef public list _handles
    cdef dict _unfinished
    cpdef Backward before(self, Call call, tuple args)
    @cython.locals(edges=list)
    cpdef after(self, Backward backward, object output)
    cpdef bint takes(self, Backward backward) except -1
    cdef _await(self, object tensor, object awaited)
    @cython.locals(ends=dict, share=Share)
    cdef _watch_shares(self, Backward backward, list inputs, list outputs)
