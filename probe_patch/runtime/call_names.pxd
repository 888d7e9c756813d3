cimport cython
from probe_patch.runtime.ascii_text cimport AsciiText
from probe_patch.runtime.capture.forwards cimport Call
from probe_patch.runtime.capture.names cimport CallName
@cython.locals(name=CallName)
cpdef add_forward(AsciiText text, Call call)
@cython.locals(name=CallName)
cpdef add_backward(AsciiText text, Call call)
@cython.locals(before=str, behind=str)
cdef _add(AsciiText text, object label, tuple around, long number)
