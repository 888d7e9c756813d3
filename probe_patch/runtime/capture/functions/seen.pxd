cimport cython
from probe_patch.runtime.capture.frames cimport outside
from probe_patch.runtime.capture.functions.calls cimport FunctionCalls
from probe_patch.runtime.capture.functions.labels cimport Label, Labels
from probe_patch.runtime.capture.functions.operators cimport operator_at
from probe_patch.runtime.capture.forwards cimport Call
from probe_patch.runtime.capture.nesting cimport Nesting
cdef class SeenCalls:
    cdef FunctionCalls _calls
    cdef Labels _labels
    @cython.locals(call=Call, here=Nesting, label=Label)
    cpdef object run(self, object function, tuple args, dict kwargs)
    @cython.locals(call=Call)
    cdef Call _begin(self, Nesting here, Label label, object function, tuple args, dict kwargs)
