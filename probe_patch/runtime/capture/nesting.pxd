cimport cython
from probe_patch.runtime.capture.frames cimport FrameType, outside
from probe_patch.runtime.capture.names cimport CallName
from probe_patch.runtime.capture.unchanged cimport Unchanged
cdef class ForwardPass:
    cdef public long micro_batch
    cdef public bint has_gradients
cdef class Call:
    cdef public CallName name
    cdef public object handled
    cdef public long number
    cdef public Call parent
    cdef public ForwardPass during
    cdef public bint is_taken, has_backward
    cdef public dict record
    cdef public object stack
    cdef public object frame
    cdef public object flow
    cpdef end(self)
    cpdef dict give_record(self)
cdef class Nesting:
    cdef object _is_open
    cdef list _here, _open, _running
    cdef public ForwardPass latest, flowing
    cdef public list repeated
    cdef public bint is_in_a_function, is_in_function
    cdef public Unchanged unchanged
    cpdef bint is_in_anothers_module(self) except -1
    cpdef bint _runs(self) except -1
    cpdef bint is_in_a_module(self) except -1
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
