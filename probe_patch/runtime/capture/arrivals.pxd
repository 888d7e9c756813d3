cimport cython
from probe_patch.runtime.capture.backward cimport Backward
from probe_patch.runtime.capture.moments cimport GradientNow
from probe_patch.runtime.capture.forwards cimport Call
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.tensor_hooks cimport TensorHook
from probe_patch.runtime.store cimport Store
cdef class Awaited:
    cdef public Backward backward
    cdef public long output
    cdef public object handed_on
    cdef public Awaited later
cdef class Arrival(TensorHook):
    cdef public Session session
    cdef Awaited _awaited, _latest
    @cython.locals(session=Session, awaited=Awaited, now=GradientNow, store=Store)
    cpdef _take(self, object gradient)
    @cython.locals(latest=Awaited)
    cpdef bint join(self, Session session, Awaited awaited) except -1
@cython.locals(backward=Backward, call=Call)
cdef _take(Session session, Awaited awaited, GradientNow gradient)
