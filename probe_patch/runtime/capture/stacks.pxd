cimport cython
from probe_patch.runtime.capture.frames cimport FrameType, id, outside
from probe_patch.runtime.capture.nesting cimport Call
cdef class CallStacks:
    cdef dict _numbers, _known, _texts, _codes
    cdef list _calls
    @cython.locals(around=Call, sites=list, frame=FrameType)
    cpdef add(self, Call call)
