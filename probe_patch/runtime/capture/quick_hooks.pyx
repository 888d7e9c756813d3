"""The way from torch to the hooks of modules, without a frame of Python's in between."""

from cpython.ref cimport PyObject

# A torch that tells this in another way is found out here, and not in the run.
from torch._C._dynamo.eval_frame import get_eval_frame_callback

cdef extern from *:
    """
    /* What calls __call__ as it is written in Python, and what is in its place. */
    static ternaryfunc probe_patch_slot, probe_patch_quick;

    static void probe_patch_replace_call(PyTypeObject *kind, void *call) {
        probe_patch_slot = kind->tp_call;
        probe_patch_quick = kind->tp_call = (ternaryfunc)call;
    }

    static PyObject *probe_patch_call_in_python(PyObject *hook, PyObject *args, PyObject *keywords) {
        return probe_patch_slot(hook, args, keywords);
    }

    static PyObject *probe_patch_call_base(PyObject *hook, PyObject *args, PyObject *keywords) {
        PyTypeObject *kind = Py_TYPE(hook);
        while (kind->tp_call == probe_patch_quick) {
            kind = kind->tp_base;
        }
        return kind->tp_call(hook, args, keywords);
    }
    """
    void probe_patch_replace_call(type kind, void *call)
    object probe_patch_call_in_python(object hook, object args, PyObject *keywords)
    object probe_patch_call_base(object hook, object args, PyObject *keywords)

cdef object _get_callback = get_eval_frame_callback

cdef object _call(object hook, object args, PyObject *keywords):
    # Who compiles what runs takes over frames of Python's alone, and what is below them.
    if _get_callback() is None:
        return probe_patch_call_base(hook, args, keywords)
    return probe_patch_call_in_python(hook, args, keywords)


def call_as_base(type kind):
    """Have Python call the objects of a class as it calls those of its base, which is compiled, where torch.compile is
    not at work. For that the class has a ``__call__`` in Python, which does the same.
    """
    probe_patch_replace_call(kind, <void *> _call)
