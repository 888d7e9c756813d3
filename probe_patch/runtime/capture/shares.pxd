cimport cython
from probe_patch.runtime.store cimport Store
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.backward cimport Backward
from probe_patch.runtime.capture.moments cimport GradientNow
cdef object _current_graph_task_id
cdef class Share:
    cdef Session _session
    cdef object _sum
    cdef public object _pass
    cdef long _missing
    cdef public Backward backward
    cdef public list inputs
    cdef public long parts
    cdef public bint is_over
    cpdef add(self, object gradient)
    cpdef give_up(self)
    cpdef finish(self)
    @cython.locals(session=Session, backward=Backward)
    cpdef record(self, GradientNow gradient)
cdef class Passing:
    cdef Session _session
    cdef public list _shares
    @cython.locals(store=Store, share=Share, now=dict, gradient=GradientNow)
    cdef _take(self, list shares, tuple passed_on)
    cpdef bint join(self, Session session, list shares) except -1
cpdef object watch(Session session, object node, list shares)
@cython.locals(share=Share, waiting=list, shares=list, passing=list, seen=set)
cpdef list nodes_that_pass_on(list outputs, dict ends, long since)
