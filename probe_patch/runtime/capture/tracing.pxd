cdef object _current_graph_task_id, _get_tracing_state, _torch_is_compiling
cdef dict _COMPILER
cdef bint _HAS_FLAG
cpdef bint is_compiling() except -1
cpdef bint is_traced() except -1
cpdef bint inside_backward() except -1
cpdef bint is_no_pass() except -1
