cimport cython
from probe_patch.runtime.capture.frames cimport FrameType, outside
from probe_patch.runtime.capture.forwards cimport Call, ForwardPass
from probe_patch.runtime.capture.names cimport CallName
from probe_patch.runtime.capture.unchanged cimport Unchanged
cdef class Nesting:
    cdef object _session
    cdef list _here, _open, _running
    cdef public ForwardPass latest, flowing
    cdef public list repeated
    cdef public bint is_in_a_function, is_in_function, has_mode, is_visited
    cdef public Unchanged unchanged
    cpdef bint is_in_anothers_module(self) except -1
    cpdef bint _runs(self) except -1
    cpdef bint is_in_a_module(self) except -1
    cpdef bint is_of_open_session(self) except -1
    cpdef Call innermost(self)
    cpdef enter(self, Call call)
    @cython.locals(call=Call, index=Py_ssize_t)
    cpdef Call leave(self, CallName name)
    cpdef bint enter_pass(self, FrameType frame) except -1
    cpdef leave_pass(self)
    cdef _drop_ended(self, object frame)
    cdef _is_here(self)
    cdef _may_be_gone(self)
cdef bint _is_around(FrameType frame, FrameType inner) except -1
