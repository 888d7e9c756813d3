cimport cython
from probe_patch.runtime.capture.forwards cimport Call, ForwardPass
from probe_patch.runtime.capture.names cimport CallName
from probe_patch.runtime.capture.records cimport Recorder
from probe_patch.runtime.capture.stacks cimport CallStacks
from probe_patch.runtime.capture.forms cimport TensorTexts
from probe_patch.runtime.capture.selection cimport Selection
from probe_patch.runtime.batch cimport Batch
from probe_patch.runtime.hook_lock cimport HookLock
from probe_patch.runtime.json_text cimport JsonStyle
from probe_patch.runtime.lines cimport Lines
from probe_patch.runtime.capture.backward cimport Backward
cdef class Store:
    cdef public object problems, wanted, _most_entries, _nan_check
    cdef public HookLock lock
    cdef JsonStyle _style
    cdef public Lines lines
    cdef public Selection selection
    cdef public CallStacks _stacks
    cdef public Recorder recorder
    cdef public long recomputed, _flushed, _due
    cdef public ForwardPass latest
    cdef public dict saved, _counts, _passes, _open, _backwards, _parameter_gradients, _firings
    cdef public set _admitted, _dropped, _whole
    cdef public bint is_relieved_now
    cdef bint _takes_forward
    cdef public list _begun, _finished, _unwritten
    @cython.locals(call=Call, number=long)
    cpdef Call open_call(self, CallName name, Call parent, ForwardPass during, object handled)
    cpdef bint admits(self, str entry) except -1
    cpdef close_call(self, Call call)
    cpdef add_backward(self, Backward backward)
    cpdef str parameters_gradient(self, object module, str parameter)
    cpdef add_parameter_gradient(self, str entry, str parameter, object gradient, long of)
    cpdef bint due(self) except -1
    @cython.locals(call=Call, calls=list, backwards=list, others=list, tensors=TensorTexts)
    cpdef flush(self)
    cdef TensorTexts _read(self)
    @cython.locals(first=Batch)
    cdef _write(self, Batch batch)
