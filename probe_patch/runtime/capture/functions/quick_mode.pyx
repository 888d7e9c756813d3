"""The way from torch to a torch function mode, without a frame of Python's in between.

Optimizers ask thousands of tensors for their gradients in each step, and torch asks the mode about each time.
"""

from cpython.object cimport PyObject_GenericGetAttr

from probe_patch.runtime.capture.tracing cimport is_compiling

cdef class QuickMode:
    """What a mode may derive from. When torch asks it for its ``__torch_function__``, it gives itself.

    torch.compile looks for the method in the class instead, and finds the one that is written in Python.
    """

    def __getattribute__(self, name):
        # Torch calls a mode only through a method of its own, which it tells by ``__self__``.
        if name == "__torch_function__" or name == "__self__":
            return self
        return PyObject_GenericGetAttr(self, name)

    def __call__(self, func, types, args=(), kwargs=None):
        if is_compiling():
            return func(*args, **(kwargs or {}))
        return self.seen.run(func, args, kwargs)
