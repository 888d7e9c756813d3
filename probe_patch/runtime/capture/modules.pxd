from probe_patch.runtime.capture.forward_hooks cimport ForwardHooks
from probe_patch.runtime.capture.session cimport Session
cdef class ModuleCapture:
    cdef object _store, _unhooked
    cdef Session _session
    cdef ForwardHooks _passes, _calls
    cdef list _parameters
    cdef _watch_parameters(self, object named)
    cdef _hook(self, object named, object parameters)
    cdef _hook_unrecorded(self, object named, object before, object after)
cdef bint _has_no_parameters(object module) except -1
