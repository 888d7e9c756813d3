"""Call stacks as keys of a dictionary. In Python, a walk over the frames takes many times as long."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uintptr_t

from probe_patch.runtime.capture.frames cimport probe_patch_back, probe_patch_code

cdef extern from *:
    """
    static int probe_patch_instruction(PyObject *frame) {
    #if PY_VERSION_HEX < 0x030B0000
        return ((PyFrameObject *)frame)->f_lasti;
    #else
        return PyFrame_GetLasti((PyFrameObject *)frame);
    #endif
    }
    """
    int probe_patch_instruction(object frame)

cdef enum:
    AT_ONCE = 256


def stack_key(frame, uintptr_t outer, int64_t beyond):
    """The code and the instruction of each frame, innermost first.

    Args:
        outer: the identity of the frame to stop behind; 0 for none.
        beyond: stands for the frames behind that one.
    """
    cdef int64_t sites[2 * 256 + 1]
    cdef Py_ssize_t count = 0
    cdef bytes earlier = None
    while frame is not None:
        if count == 2 * AT_ONCE:
            earlier = (earlier or b"") + PyBytes_FromStringAndSize(<char*> sites, sizeof(sites[0]) * count)
            count = 0
        code = probe_patch_code(frame)
        sites[count] = <int64_t> <uintptr_t> <void*> code
        sites[count + 1] = probe_patch_instruction(frame)
        count += 2
        if <uintptr_t> <void*> frame == outer:
            sites[count] = beyond
            count += 1
            break
        frame = probe_patch_back(frame)
    key = PyBytes_FromStringAndSize(<char*> sites, sizeof(sites[0]) * count)
    return key if earlier is None else earlier + key
