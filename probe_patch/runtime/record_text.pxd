cimport cython
from probe_patch.runtime.ascii_text cimport AsciiText
from probe_patch.runtime.capture.forms cimport TensorList, TensorTexts
from probe_patch.runtime.json_text cimport JsonStyle
@cython.locals(text=AsciiText)
cpdef str record_text(object record, TensorTexts tensors, JsonStyle style)
@cython.locals(before=str)
cpdef add_record(AsciiText text, object record, TensorTexts tensors, JsonStyle style)
@cython.locals(before=str, number=long)
cdef _add_tensors(AsciiText text, TensorList listed, TensorTexts tensors)
