cimport cython
from probe_patch.runtime.capture.frames cimport FrameType
from probe_patch.runtime.capture.functions.call_sites cimport Reading, call_at
cdef object _HANDS_ON
cdef class PassedArguments:
    cdef object _function, _code
    cdef tuple _names
    cdef dict _readings
    @cython.locals(own=FrameType)
    cpdef object of(self, FrameType frame, tuple args, dict kwargs)
    @cython.locals(ways=tuple, values=dict, way=Reading)
    cdef object _read(self, object site, tuple args, dict kwargs)
    cdef _begin_anew(self)
cdef FrameType _frame_of(object code, FrameType frame)
