cimport cython
from probe_patch.runtime.ascii_text cimport AsciiText
from probe_patch.runtime.call_names cimport add_backward, add_forward
from probe_patch.runtime.capture.backward cimport Backward
from probe_patch.runtime.capture.forms cimport TensorTexts
from probe_patch.runtime.capture.forwards cimport Call
from probe_patch.runtime.json_text cimport JsonStyle
from probe_patch.runtime.lines cimport Lines
from probe_patch.runtime.record_text cimport add_record
cdef class Batch:
    cdef list _calls, _backwards, _others
    cdef TensorTexts _tensors
    cpdef drop(self)
    @cython.locals(call=Call, backward=Backward, text=AsciiText)
    cpdef write(self, Lines lines, object wanted, JsonStyle style, object problems)
    @cython.locals(begin=Py_ssize_t)
    cdef _add(self, AsciiText text, object record, JsonStyle style, object problems)
