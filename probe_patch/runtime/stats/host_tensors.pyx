"""Tensors of the host, looked at and measured in one step, by torch's table of C functions for DLPack.

Asking a tensor from Python for its shape, its strides and the rest takes longer than measuring a small one. The layout
of the table is that of DLPack 1.2 (``dlpack.h``), which torch has from 2.10 on.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

import torch

from probe_patch.runtime.stats.table cimport DeviceRows

cdef enum:
    CPU = 1
    MOST_DIMENSIONS = 64
    # Read in about 5 microseconds; below, giving Python's lock up takes longer than it is worth.
    LARGE = 1 << 16
    MAJOR_VERSION = 1

ctypedef struct DLPackExchangeAPI:
    uint32_t major
    uint32_t minor
    void* earlier
    void* allocate
    void* managed_from
    void* managed_to
    void* look
    void* stream

cdef class HostTensors:
    """Measures whole tensors as they come.

    Args:
        measure, measure_strided: the addresses of the library's functions.
        flags: what the library calls a dtype, by DLPack's code and bits.
        describe: makes, of a tensor, what ``take`` returns of all that have its dtype, shape and requires_grad.

    Raises:
        AttributeError: this torch has no such table, or none that is known here.

    Attributes:
        row: the one that the last tensor was measured into; -1 of an empty one.
    """

    def __init__(self, uintptr_t measure, uintptr_t measure_strided, flags, describe):
        cdef DLPackExchangeAPI* api
        api = <DLPackExchangeAPI*> PyCapsule_GetPointer(torch.Tensor.__dlpack_c_exchange_api__, "dlpack_exchange_api")
        if api.major != MAJOR_VERSION or api.look == NULL:
            raise AttributeError("torch's DLPack has another version")
        self._look = <look_function> api.look
        self._measure = <measure_function> measure
        self._measure_strided = <measure_strided_function> measure_strided
        memset(self._flags, 0xff, sizeof(self._flags))
        for (code, bits), flag in flags.items():
            self._flags[code << 8 | bits] = flag
        self._describe = describe
        self._known = {}

    cpdef object take(self, object tensor, DeviceRows rows):
        """Measure a tensor into the next row; nothing may be waiting in the rows.

        Returns:
            what its like is described by; None where it is not such that it can be read here.
        """
        cdef DLTensor seen
        cdef int64_t layout[2 * 64]
        cdef int64_t count = 1, extent = 1, expected = 1, flags
        cdef int64_t* row
        cdef int32_t i
        cdef bint is_contiguous = True, requires_grad
        try:
            self._look(<void*> tensor, &seen)
        except Exception:
            return None
        if seen.device_type != CPU or seen.ndim > MOST_DIMENSIONS or seen.lanes != 1 or seen.code >= CODES or seen.bits > 128:
            return None
        flags = self._flags[seen.code << 8 | seen.bits]
        if flags < 0 or tensor.is_neg():
            return None
        requires_grad = tensor.requires_grad
        # The description's key lies where the layout does: the shape, and what else there is to it.
        for i in range(seen.ndim - 1, -1, -1):
            layout[i] = seen.shape[i]
            count *= seen.shape[i]
            if seen.strides != NULL and seen.shape[i] != 1:
                if seen.strides[i] != expected:
                    is_contiguous = False
                expected *= seen.shape[i]
                extent += (seen.shape[i] - 1) * seen.strides[i]
        if seen.strides == NULL:
            extent = count
        layout[seen.ndim] = flags << 1 | requires_grad
        key = PyBytes_FromStringAndSize(<char*> layout, (seen.ndim + 1) * sizeof(int64_t))
        if count:
            offset = tensor.storage_offset()
            if tensor.untyped_storage().nbytes() * 8 < (<int64_t> offset + extent) * seen.bits:
                return None
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._describe(tensor)
        if count == 0:
            self.row = -1
            return known
        self.row = rows.used
        row = <int64_t*> <uintptr_t> rows.reserve()
        if is_contiguous:
            if count < LARGE:
                self._measure(seen.data, count, flags, row)
            else:
                with nogil:
                    self._measure(seen.data, count, flags, row)
        else:
            memcpy(layout + seen.ndim, seen.strides, seen.ndim * sizeof(int64_t))
            if count < LARGE:
                self._measure_strided(seen.data, seen.ndim, layout, flags, row)
            else:
                with nogil:
                    self._measure_strided(seen.data, seen.ndim, layout, flags, row)
        return known
