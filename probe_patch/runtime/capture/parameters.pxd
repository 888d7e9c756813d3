cimport cython
from probe_patch.runtime.capture.frames cimport id
from probe_patch.runtime.capture.names cimport ModuleName, NamedModule
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.tensor_hooks cimport GradientHook
from probe_patch.runtime.store cimport Store
cdef object _DisableTorchFunction
cdef class OwnParameters:
    cdef object __weakref__
    cdef Session _session
    cdef ModuleName _module
    cdef list _hooks
    cdef dict _latest, _earlier
    cpdef bint has_gradients(self) except -1
    cpdef find_stand_ins(self, object module)
    @cython.locals(hook=GradientHook, hooks=list)
    cpdef remove(self)
    cdef _find_stand_in(self, str name, object module)
    cdef _take_turn(self, str name, object tensor)
    @cython.locals(hook=_ParameterGradient)
    cdef _hook(self, str name, object tensor)
cdef class _ParameterGradient(GradientHook):
    cdef object _parameter
    cdef ModuleName _module
    cdef dict _siblings
    cdef str _name
    @cython.locals(store=Store)
    cpdef _take(self, object gradient)
    @cython.locals(store=Store)
    cdef _record(self, str entry, object gradient)
