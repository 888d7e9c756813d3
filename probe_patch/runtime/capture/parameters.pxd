from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.tensor_hooks cimport GradientHook
from probe_patch.runtime.store cimport Store
cimport cython
cdef class OwnParameters:
    cdef object __weakref__
    cdef Session _session
    cdef object _module
    cdef list _hooks
    cdef dict _latest, _hooked
    cpdef find_stand_ins(self, object module)
    cpdef remove(self)
    cdef _find_stand_in(self, str name, object module)
    @cython.locals(hook=_ParameterGradient, key=tuple)
    cdef _hook(self, str name, object tensor)
cdef class _ParameterGradient(GradientHook):
    cdef object _module, _parameter, _siblings
    cdef str _name
    @cython.locals(store=Store)
    cpdef _take(self, object gradient)
    @cython.locals(store=Store)
    cdef _record(self, str entry, object gradient)
