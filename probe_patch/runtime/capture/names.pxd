cimport cython
from probe_patch.runtime.capture.frames cimport id
cdef class CallName:
    cdef readonly str label
    cpdef str forward(self, long call)
    cpdef str backward(self, long call)
cdef class ModuleName(CallName):
    cpdef str forward(self, long call)
    cpdef str backward(self, long call)
    cpdef str parameters_gradient(self, long firing)
cdef class FunctionName(CallName):
    cpdef str forward(self, long call)
    cpdef str backward(self, long call)
cdef class NamedModule:
    cdef readonly ModuleName name
    cdef readonly object module
    cdef readonly bint is_root
@cython.locals(named=dict)
cpdef list named_modules(object model)
@cython.locals(found=list, seen=set, waiting=list, one=tuple, path=str)
cdef list _below(object root, str prefix)
@cython.locals(named=dict)
cdef list _as_it_says(object root, str prefix)
