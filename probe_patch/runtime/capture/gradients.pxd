cimport cython
from probe_patch.runtime.capture.arrivals cimport Arrival, Awaited
from probe_patch.runtime.capture.backward cimport Backward
from probe_patch.runtime.capture.nested cimport tensors_in
from probe_patch.runtime.capture.forwards cimport Call
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.shares cimport Part, watch
from probe_patch.runtime.capture.tensor_hooks cimport is_backward_running, make_hooks, unmake_hooks
from probe_patch.runtime.capture.walks cimport nodes_that_pass_on
from probe_patch.runtime.store cimport Store
cdef object _get_level
cdef class Gradients:
    cdef Store _store
    cdef public list _hooked, _tensors
    cdef long _watched
    cdef dict _unfinished
    cpdef Backward before(self, Session session, Call call, tuple args)
    cpdef after(self, Session session, Backward backward, object output)
    @cython.locals(store=Store, call=Call)
    cpdef begin(self, Backward backward)
    @cython.locals(made=list, hands_on=list, flows=bint, index=long, number=long)
    cdef _hook(self, Session session, Backward backward, list outputs)
    @cython.locals(arrival=Arrival)
    cdef _await(self, Session session, object tensor, object node, Awaited awaited)
    @cython.locals(may_be_watched=bint, pair=tuple, parts=Part)
    cdef _watch_shares(self, Session session, Backward backward, list hands_on, list outputs)
cpdef _take_off(Session session, object hooks)
cdef list _ours(Session session, object hooks)
@cython.locals(place=long)
cdef object _places(Backward backward, object node, long number)
