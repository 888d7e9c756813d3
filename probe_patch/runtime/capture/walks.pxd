cimport cython
from probe_patch.runtime.capture.backward cimport Backward
from probe_patch.runtime.capture.frames cimport id
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.shares cimport Part, Share
cdef object _ACCUMULATE, _FORMS
cdef dict _are_forms
cdef bint _only_forms(object node) except -1
cdef class End:
    cdef public long number
    cdef public Share share
    cdef dict _others
    cdef add(self, End other)
    cdef End at(self, long number)
cpdef list nodes_that_pass_on(Session session, Backward backward, list hands_on, list outputs)
@cython.locals(numbers=list, number=long, place=long, first=End, end=End, share=Share)
cdef bint _add_ends(dict ends, Session session, Backward backward, list hands_on) except -1
@cython.locals(
    since=long, is_sealed=bint, seen=set, ahead=list, passing=list, first=Part, latest=Part, part=Part, number=long,
    edge=tuple, end=End, way=list
)
cdef list _walk(dict ends, bint has_leaves, list outputs, Backward backward)
