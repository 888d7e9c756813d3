cimport cython
from probe_patch.runtime.capture.arrivals cimport Arrival, Awaited
from probe_patch.runtime.capture.backward cimport Backward
from probe_patch.runtime.capture.nested cimport tensors_in
from probe_patch.runtime.capture.nesting cimport Call
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.shares cimport Part, watch
from probe_patch.runtime.capture.tensor_hooks cimport make_hooks, unmake_hooks
from probe_patch.runtime.capture.walks cimport nodes_that_pass_on
from probe_patch.runtime.store cimport Store
cdef object _get_level
cdef class Gradients:
    cdef Session _session
    cdef Store _store
    cdef public list _hooked, _tensors
    cdef long _watched
    cdef dict _unfinished
    cpdef Backward before(self, Call call, tuple args)
    @cython.locals(outputs=list, made=list, hands_on=list, flows=bint, index=long, number=long)
    cpdef after(self, Backward backward, object output)
    @cython.locals(store=Store, call=Call, is_taken=bint)
    cpdef begin(self, Backward backward)
    cdef list _ours(self, object hooks)
    @cython.locals(arrival=Arrival)
    cdef _await(self, object tensor, object node, Awaited awaited)
    @cython.locals(may_be_watched=bint, pair=tuple, parts=Part)
    cdef _watch_shares(self, Backward backward, list hands_on, list outputs)
@cython.locals(place=long)
cdef object _places(Backward backward, object node, long number)
