cimport cython
from probe_patch.runtime.capture.frames cimport FrameType, id
cdef dict _texts, _codes
@cython.locals(known=dict)
cpdef object frame_text(FrameType frame)
cdef object _text(object frame)
