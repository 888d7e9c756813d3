"""What ``states.state_of`` tells, from where torch and Python keep it."""

from libc.stdint cimport uint64_t, uintptr_t

import torch

cdef extern from "Python.h":
    ctypedef struct PyGetSetDef:
        void* get
        void* closure
    ctypedef struct PyGetSetDescrObject:
        PyGetSetDef* d_getset

cdef class QuickStates:
    """Without the way that Python goes from an attribute's name to the function that reads it.

    Args:
        calls: a ``TensorCalls``.

    Raises:
        AttributeError, KeyError, TypeError: torch keeps a tensor's version in another way.
    """

    def __init__(self, calls):
        cdef PyGetSetDef* version
        descriptor = torch._C.TensorBase.__dict__["_version"]
        if type(descriptor) is not type(type.__dict__["__doc__"]):
            raise TypeError("a tensor's version is no attribute that is written in C")
        version = (<PyGetSetDescrObject*> descriptor).d_getset
        self._version, self._closure = <getter_function> version.get, version.closure
        self._handle = calls.handle
        self._is_inference = <says_function> <uintptr_t> calls.is_inference

    cpdef object of(self, object tensor):
        """As ``state_of``; None too where the numbers are too large to be one."""
        cdef uint64_t address = <uintptr_t> <void*> tensor, version
        if self._is_inference(<char*> <void*> tensor + self._handle):
            return None
        version = self._version(tensor, self._closure)
        return None if version >> VERSION_BITS or address >> ADDRESS_BITS else address << VERSION_BITS | version
