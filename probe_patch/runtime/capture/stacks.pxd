cimport cython
from probe_patch.runtime.capture.frame_texts cimport frame_text
from probe_patch.runtime.capture.frames cimport FrameType, id, outside
from probe_patch.runtime.capture.forwards cimport Call
cdef class CallStacks:
    cdef dict _numbers, _known, _codes
    cdef list _calls
    @cython.locals(around=Call)
    cpdef add(self, Call call)
    @cython.locals(texts=list)
    cdef object _number(self, FrameType frame)
