from probe_patch.runtime.capture.module_calls cimport ModuleCalls
from probe_patch.runtime.capture.names cimport ModuleName
from probe_patch.runtime.capture.session cimport Session
from probe_patch.runtime.capture.tracing cimport is_no_pass, is_traced
cdef class BeginsCall:
    cdef ModuleCalls _calls
cdef class EndsCall:
    cdef ModuleCalls _calls
cdef class BeginsPass:
    cdef Session _session
    cdef ModuleName _name
cdef class BeginsVisit:
    cdef Session _session
cdef class EndsVisit:
    cdef Session _session
