"""The bytes of a tensor on the host, looked at through torch's table of C functions for DLPack, as ``HostTensors`` does.

Asking a tensor from Python for what is to be known of its memory takes longer than reading a small one.
"""

from cpython.buffer cimport PyBUF_READ
from cpython.exc cimport PyErr_Clear
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t

from probe_patch.runtime.stats.host_tensors cimport DLPackExchangeAPI, DLTensor, look_function

import torch

cdef enum:
    CPU = 1
    COMPLEX = 5
    MAJOR_VERSION = 1


cdef class HostBytes:
    """
    Raises:
        AttributeError: this torch has no such table, or none that is known here.
    """

    def __init__(self):
        cdef DLPackExchangeAPI* api
        api = <DLPackExchangeAPI*> PyCapsule_GetPointer(torch.Tensor.__dlpack_c_exchange_api__, "dlpack_exchange_api")
        if api.major != MAJOR_VERSION or api.look == NULL:
            raise AttributeError("torch's DLPack has another version")
        self._look = <look_function> api.look

    cpdef object of(self, object tensor):
        """Those of a plain and readable tensor, for as long as somebody else keeps them there.

        Returns:
            None where there are none on the host, or where they do not lie in memory as they are to be read.
        """
        cdef DLTensor seen
        cdef int64_t count = 1
        cdef int32_t i
        if self._look(<void*> tensor, &seen) != 0:
            PyErr_Clear()
            return None
        if seen.device_type != CPU or seen.lanes != 1 or seen.bits & 7 or seen.data == NULL:
            return None
        for i in range(seen.ndim - 1, -1, -1):
            if seen.strides != NULL and seen.shape[i] != 1 and seen.strides[i] != count:
                return None
            count *= seen.shape[i]
        if count == 0 or tensor.is_neg() or seen.code == COMPLEX and tensor.is_conj():
            return None
        return PyMemoryView_FromMemory(<char*> seen.data + seen.byte_offset, count * (seen.bits >> 3), PyBUF_READ)
