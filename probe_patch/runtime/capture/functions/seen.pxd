cimport cython
from probe_patch.runtime.capture.frames cimport outside
from probe_patch.runtime.capture.functions.calls cimport FunctionCalls
from probe_patch.runtime.capture.functions.labels cimport Label, Labels
from probe_patch.runtime.capture.functions.operators cimport operator_at
from probe_patch.runtime.capture.nesting cimport Call
cdef class SeenCalls:
    cdef FunctionCalls _calls
    cdef Labels _labels
    @cython.locals(call=Call, label=Label)
    cpdef object run(self, object function, tuple args, dict kwargs)
    cdef Call _begin(self, Label label, object function, tuple args, dict kwargs)
