cimport cython
from probe_patch.runtime.capture.frames cimport FrameType, id
cdef class ByCode:
    cdef object _read
    cdef dict _known, _codes
    @cython.locals(known=dict)
    cpdef object at(self, FrameType frame)
    cdef _first(self, object code)
