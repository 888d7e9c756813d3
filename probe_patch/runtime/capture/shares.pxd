cimport cython
from probe_patch.runtime.capture.backward cimport Backward
from probe_patch.runtime.capture.moments cimport GradientNow
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.store cimport Store
cdef object _current_graph_task_id
cdef class Share:
    cdef Session _session
    cdef object _sum
    cdef object _pass
    cdef long _missing, _number
    cdef tuple _others
    cdef public Backward backward
    cdef public long parts
    cdef public bint is_over
    cdef is_of_input_too(self, long number)
    cpdef add(self, object gradient)
    cpdef give_up(self)
    cpdef finish(self)
    @cython.locals(session=Session, backward=Backward, number=long, store=Store)
    cpdef record(self, GradientNow gradient)
cdef class Part:
    cdef public long number
    cdef public Share share
    cdef public list way
    cdef public Part later
cdef class Passing:
    cdef public Session session
    cdef Part _first
    @cython.locals(last=Part)
    cpdef bint join(self, Session session, Part first) except -1
@cython.locals(part=Part)
cdef _take_all(Session session, Part first, tuple passed_on)
@cython.locals(share=Share, way=list, gradient=GradientNow)
cdef _take(Session session, Part part, tuple passed_on, dict now)
cdef object _at_its_end(list way, object gradient)
@cython.locals(part=Part)
cdef _give_up(Part first)
@cython.locals(part=Part, first_to_come=Part, latest=Part)
cdef Part _those_to_come(Part first)
cpdef object watch(Session session, object node, Part first, bint may_be_watched)
