cimport cython
from probe_patch.runtime.capture.forms cimport TensorTexts
from probe_patch.runtime.json_text cimport JsonStyle
cdef dict _KEY_TEXTS
@cython.locals(pieces=list)
cpdef str entry_line(str entry, object record, TensorTexts tensors, JsonStyle style=*)
@cython.locals(pieces=list)
cpdef str record_text(object record, TensorTexts tensors, JsonStyle style)
cdef _add(list pieces, object record, TensorTexts tensors, JsonStyle style)
