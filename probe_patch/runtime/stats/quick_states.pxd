from probe_patch.runtime.stats.host_tensors cimport says_function

cdef enum:
    VERSION_BITS = 16
    ADDRESS_BITS = 48

ctypedef object (*getter_function)(object tensor, void* closure)

cdef class QuickStates:
    cdef getter_function _version
    cdef void* _closure
    cdef Py_ssize_t _handle
    cdef says_function _is_inference
    cpdef object of(self, object tensor)
