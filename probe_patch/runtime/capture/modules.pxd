from probe_patch.runtime.capture.compiled cimport is_compiled, is_wrapper
from probe_patch.runtime.capture.forward_hooks cimport ForwardHooks, vars
from probe_patch.runtime.capture.names cimport NamedModule
from probe_patch.runtime.capture.parameters cimport OwnParameters
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.tensor_hooks cimport is_backward_running
from probe_patch.runtime.capture.unhooked cimport Unhooked
cimport cython
cdef object _DisableTorchFunction
cdef class ModuleCapture:
    cdef object _store
    cdef Session _session
    cdef ForwardHooks _passes, _calls
    cdef Unhooked _unhooked
    cdef list _hooked, _parameters
    @cython.locals(named_ones=list, named=NamedModule)
    cpdef attach(self, object model)
    @cython.locals(named_ones=list, named=NamedModule)
    cpdef attach_unrecorded(self, object model)
    @cython.locals(one=OwnParameters)
    cpdef detach(self)
    @cython.locals(parameters=OwnParameters)
    cdef OwnParameters _watch_parameters(self, NamedModule named)
    cdef _hook(self, NamedModule named, OwnParameters parameters)
    cdef _hook_unrecorded(self, NamedModule named, object before, object after)
    @cython.locals(hooks=ForwardHooks)
    cdef _take_off(self, object module)
    cdef _note_unhooked(self, NamedModule named, object error)
    cpdef _note_left(self, object error)
cdef bint _has_no_parameters(object module) except -1
