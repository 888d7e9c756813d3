from probe_patch.runtime.capture.functions.handed_on cimport PassedArguments
from probe_patch.runtime.capture.names cimport CallName
cdef class Labels
cdef class Label:
    cdef str _own
    cdef dict _by_operator
    cdef public CallName name
    cdef public PassedArguments passed
    cdef public bint is_in_c, may_be_operator
    cpdef object of_operator(self, str operator, Labels labels)
cdef object _UNKNOWN
cdef class Labels:
    cdef dict _known
    cdef object _level, _namespaces
    cpdef Label of(self, object function)
    cpdef object name(self, str prefix, str name)
