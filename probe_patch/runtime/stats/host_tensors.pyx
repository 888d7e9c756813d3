"""Tensors of the host, looked at and measured in one step, by torch's table of C functions for DLPack.

Asking a tensor from Python for its shape, its strides and the rest takes longer than measuring a small one. The layout
of the table is that of DLPack 1.2 (``dlpack.h``), which torch has from 2.10 on.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_Clear
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy, memset

import torch

from probe_patch.runtime.stats.table cimport DeviceRows

cdef enum:
    CPU = 1
    MOST_DIMENSIONS = 64
    # Read in about 5 microseconds; below, giving Python's lock up takes longer than it is worth.
    LARGE = 1 << 16
    MAJOR_VERSION = 1

# Odd, and its upper bits are mixed.
cdef uint64_t MULTIPLIER = 0x9E3779B97F4A7C15ULL

cdef class HostTensors:
    """Measures whole tensors as they come.

    Args:
        measure, measure_strided: the addresses of the library's functions.
        flags: what the library calls a dtype, by DLPack's code and bits.
        describe: makes, of a tensor, what ``take`` returns of all that have its dtype, shape and requires_grad.
        calls: a ``TensorCalls``; None to ask by the tensor's methods.

    Raises:
        AttributeError: this torch has no such table, or none that is known here.

    Attributes:
        row: the one that the last tensor was measured into; -1 of an empty one.
    """

    def __init__(self, uintptr_t measure, uintptr_t measure_strided, flags, describe, calls):
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
        memset(self._lately, 0, sizeof(self._lately))
        self._handle = 0
        if calls is not None:
            self._handle = calls.handle
            self._is_neg = <says_function> <uintptr_t> calls.is_neg
            self._requires_grad = <says_function> <uintptr_t> calls.requires_grad
            self._storage_size = <writes_function> <uintptr_t> calls.storage_size
            self._storage_offset = <writes_function> <uintptr_t> calls.storage_offset

    cpdef object take(self, object tensor, DeviceRows rows):
        """Measure a tensor into the next row; nothing may be waiting in the rows.

        Returns:
            what its like is described by; None where it is not such that it can be read here.
        """
        cdef DLTensor seen
        cdef int64_t layout[2 * 64]
        cdef int64_t count = 1, extent = 1, expected = 1, flags, length
        cdef uint64_t mixed = 0
        cdef int64_t* row
        cdef int32_t i
        cdef bint is_contiguous = True
        if self._look(<void*> tensor, &seen) != 0:
            PyErr_Clear()
            return None
        if seen.device_type != CPU or seen.ndim > MOST_DIMENSIONS or seen.lanes != 1 or seen.code >= CODES or seen.bits > 128:
            return None
        flags = self._flags[seen.code << 8 | seen.bits]
        if flags < 0:
            return None
        # The description's key lies where the layout does: the shape, and what else there is to it.
        for i in range(seen.ndim - 1, -1, -1):
            layout[i] = length = seen.shape[i]
            mixed = (mixed + <uint64_t> length) * MULTIPLIER
            count *= length
            if seen.strides != NULL and length != 1:
                if seen.strides[i] != expected:
                    is_contiguous = False
                expected *= length
                extent += (length - 1) * seen.strides[i]
        if seen.strides == NULL:
            extent = count
        if self._handle:
            if self._is_neg(<char*> <void*> tensor + self._handle):
                return None
            layout[seen.ndim] = flags << 1 | self._requires_grad((<void**> (<char*> <void*> tensor + self._handle))[0])
        else:
            if tensor.is_neg():
                return None
            layout[seen.ndim] = flags << 1 | <bint> tensor.requires_grad
        if count and (seen.data == NULL or not self._is_there(tensor, extent, seen.bits)):
            return None
        mixed = (mixed + <uint64_t> layout[seen.ndim]) * MULTIPLIER
        known = self._described(tensor, layout, seen.ndim + 1, mixed)
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

    cdef bint _is_there(self, object tensor, int64_t extent, int64_t bits) except -1:
        """Whether all of it lies in its storage, which may have been freed or cut."""
        cdef int64_t size, offset
        cdef char* handle
        if self._handle:
            handle = <char*> <void*> tensor + self._handle
            if self._storage_size(handle, &size) != 0 or self._storage_offset(handle, &offset) != 0:
                return False
        else:
            size, offset = tensor.untyped_storage().nbytes(), tensor.storage_offset()
        return size * 8 >= (offset + extent) * bits

    cdef object _described(self, object tensor, int64_t* key, int32_t words, uint64_t mixed):
        """What tensors of this key are described by: nearly always one of those met lately, in its place."""
        cdef Met* met = &self._lately[mixed >> (64 - PLACES_BITS)]
        if met.words == words and memcmp(met.key, key, words * sizeof(int64_t)) == 0:
            return <object> met.description
        whole = PyBytes_FromStringAndSize(<char*> key, words * sizeof(int64_t))
        known = self._known.get(whole)
        if known is None:
            known = self._known[whole] = self._describe(tensor)
        if words <= MOST_WORDS:
            # ``_known`` holds it for as long as this is there.
            memcpy(met.key, key, words * sizeof(int64_t))
            met.words, met.description = words, <void*> known
        return known
