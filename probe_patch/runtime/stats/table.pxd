cimport cython
from probe_patch.runtime.stats.host_tensors cimport HostTensors
cdef class StatisticsTable:
    cdef object _problems, _backends
    cdef bint _counts, _is_waiting
    cdef dict _devices
    cdef DeviceRows _host
    cdef object _describe
    cdef public long row
    cdef long _most_devices
    @cython.locals(rows=DeviceRows, row=long, quick=HostTensors)
    cpdef object take(self, object tensor)
    @cython.locals(rows=DeviceRows)
    cpdef long add(self, object values, object kind) except -1
    @cython.locals(rows=DeviceRows)
    cpdef launch(self)
    cpdef read(self)
    @cython.locals(rows=DeviceRows)
    cdef DeviceRows _begin(self, object device)

cdef class DeviceRows:
    cdef _begin_block(self)
    cdef object _device, _backends, _problems, _found, _accumulator, _streams
    cdef public HostTensors quick
    cdef long _room, _next, _row_bytes
    cdef public long number
    cdef bint _counts
    cdef list _blocks, _kinds
    cdef set _unmeasured
    cdef public long used
    @cython.locals(address=long)
    cpdef long reserve(self) except -1
    cdef public list waiting
    @cython.locals(number=long)
    cpdef long add(self, object values, object kind) except -1
    @cython.locals(values=list, kinds=list)
    cpdef launch(self)
    cpdef read(self)
