cimport cython
from probe_patch.runtime.capture.frames cimport outside
from probe_patch.runtime.stats.apart cimport ApartFromTheRun
from probe_patch.runtime.capture.forwards cimport Call
from probe_patch.runtime.capture.nesting cimport Nesting
from probe_patch.runtime.capture.records cimport Recorder
from probe_patch.runtime.hook_lock cimport HookLock
from probe_patch.runtime.store cimport Store
cdef object _current_graph_task_id

cdef class Session:
    cdef object __weakref__
    cdef public Store store
    cdef public object wanted, recomputations, threads, _nestings
    cdef public object gradients
    cdef HookLock _lock
    cdef public bint takes_inputs, takes_outputs, takes_backward
    cdef public bint is_open, is_paused, dictionaries_stay, may_meet_again
    cdef long _depth
    cdef list _apart, _passes
    cdef object _pid
    cpdef Nesting here(self)
    @cython.locals(apart=ApartFromTheRun)
    cpdef bint enter(self) except -1
    @cython.locals(ending=ApartFromTheRun, store=Store, recorder=Recorder)
    cpdef leave(self)
    @cython.locals(latest=ApartFromTheRun)
    cpdef bint ran_with(self) except -1
    cpdef take_inputs(self, Call call, tuple args, dict kwargs)
    cpdef take_output(self, Call call, object output)
    cpdef record_inputs(self, Call call, tuple args, dict kwargs)
    cpdef record_output(self, Call call, object output)
    cpdef take_parameters(self, Call call, object module)
    @cython.locals(nesting=Nesting, call=Call)
    cpdef Call open_module(self, object name, object handled)
    cpdef Call open_function(self, Nesting here, object name)
    cpdef visit_thread(self, Nesting nesting)
    cpdef leave_thread(self, Nesting nesting)
    cpdef enter_pass(self, object root)
    @cython.locals(nesting=Nesting)
    cpdef bint enter_visit(self) except -1
    @cython.locals(nesting=Nesting)
    cpdef leave_visit(self)
    cpdef begin_pass(self, object root)
