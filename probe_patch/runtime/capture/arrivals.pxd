cimport cython
from probe_patch.runtime.capture.nesting cimport Call
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.moments cimport GradientNow
from probe_patch.runtime.capture.tensor_hooks cimport GradientHook
from probe_patch.runtime.capture.backward cimport Backward
cdef class Awaited:
    cdef public Backward backward
    cdef public long output
    cdef public object handed_on
cdef class Arrival(GradientHook):
    cdef public list _awaited
    @cython.locals(session=Session, awaited=Awaited, now=GradientNow)
    cpdef _take(self, object gradient)
    cpdef bint join(self, Session session, Awaited awaited) except -1
@cython.locals(backward=Backward, call=Call)
cdef _take(Session session, Awaited awaited, GradientNow gradient)
