cimport cython

# Frames as C sees them: reading an attribute of one takes a fraction of the time.
cdef extern from *:
    """
    #include "frameobject.h"
    #if PY_VERSION_HEX < 0x030B0000
    static PyObject *probe_patch_lasti(PyObject *frame) { return PyObject_GetAttrString(frame, "f_lasti"); }
    #else
    static PyObject *probe_patch_lasti(PyObject *frame) { return PyLong_FromLong(PyFrame_GetLasti((PyFrameObject *)frame)); }
    #endif
    static PyObject *probe_patch_back(PyObject *frame) {
        PyObject *back = (PyObject *)PyFrame_GetBack((PyFrameObject *)frame);
        if (back != NULL) return back;
        Py_INCREF(Py_None);
        return Py_None;
    }
    static PyObject *probe_patch_code(PyObject *frame) { return (PyObject *)PyFrame_GetCode((PyFrameObject *)frame); }
    """
    object probe_patch_back(object frame)
    object probe_patch_code(object frame)
    object probe_patch_lasti(object frame)

    ctypedef class types.CodeType [object PyCodeObject, check_size ignore]:
        cdef object co_filename

    ctypedef class types.FrameType [object PyObject, check_size ignore]:
        @property
        cdef inline object f_back(self):
            return probe_patch_back(self)
        @property
        cdef inline CodeType f_code(self):
            return <CodeType> probe_patch_code(self)
        @property
        cdef inline object f_lasti(self):
            return probe_patch_lasti(self)

cdef extern from "Python.h":
    object PyLong_FromVoidPtr(void*)

cdef inline object id(object value):
    return PyLong_FromVoidPtr(<void*> value)

cdef object _getframe
cdef dict _is_own
@cython.locals(frame=FrameType, around=FrameType)
cpdef object outside()
