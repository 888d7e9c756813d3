from probe_patch.runtime.stats.quick_states cimport QuickStates

cdef QuickStates _quick
cdef object _VERSION_BITS
cpdef object state_of(object tensor)
