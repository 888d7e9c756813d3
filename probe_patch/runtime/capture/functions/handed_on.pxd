cimport cython
from probe_patch.runtime.capture.frames cimport FrameType
from probe_patch.runtime.capture.functions.call_sites cimport Reading, call_at

cdef object _HANDS_ON
cdef int _DEPTH
cdef class PassedArguments:
    cdef object _function, _code
    cdef tuple _names
    cdef dict _readings
    @cython.locals(own=FrameType)
    cpdef object of(self, FrameType frame, tuple args, dict kwargs)
    @cython.locals(ways=tuple, way=Reading, values=dict)
    cdef object _read(self, object site, tuple args, dict kwargs)
    cdef object _begin_anew(self)
cdef object _frame_of(object code, object frame)
