cimport cython
from probe_patch.runtime.capture.frames cimport outside
from probe_patch.runtime.capture.names cimport ModuleName
from probe_patch.runtime.capture.forwards cimport Call
from probe_patch.runtime.capture.nesting cimport Nesting
from probe_patch.runtime.capture.parameters cimport OwnParameters
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.unchanged cimport Unchanged, nothing_comes_between
cdef object _current_graph_task_id, _exc_info
cdef class ModuleCalls:
    cdef Session _session
    cdef ModuleName _name
    cdef OwnParameters _parameters
    @cython.locals(session=Session)
    cpdef begin(self, object module, tuple args, dict kwargs)
    @cython.locals(session=Session)
    cpdef end(self, object module, object output)
    @cython.locals(call=Call, unchanged=Unchanged, has_gradients=bint)
    cdef _begin(self, Session session, object module, tuple args, dict kwargs)
    @cython.locals(nesting=Nesting, call=Call, unchanged=Unchanged)
    cdef _end(self, Session session, object module, object output)
