"""What torch knows of each thread, asked and changed where torch's libraries keep it.

Through Python it takes seven calls to set one hook apart from the run and to go back, longer than the hook itself may
take. The functions are C++ ones that take and give no more than a number; they are looked up by the names that
compilers give them, and taken only where they do what torch's own Python functions do.
"""

from contextlib import nullcontext
from ctypes import CDLL, c_void_p, cast

from libc.stdint cimport uintptr_t

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

cdef enum:
    ALL_DISABLED = 2
    GRADIENTS = 4

_NAMES = (
    "_ZN3c108GradMode10is_enabledEv",
    "_ZN3c1013InferenceMode10is_enabledEv",
    "_ZN3c108GradMode11set_enabledEb",
    "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv",
    "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv",
    "_ZN2at4impl22PythonTorchFunctionTLS18set_disabled_stateENS0_26TorchFunctionDisabledStateE",
)

_STATES = tuple(
    (with_gradients, functions)
    for with_gradients in (True, False)
    for functions in (nullcontext, torch._C.DisableTorchFunctionSubclass, torch._C.DisableTorchFunction)
)
_APART = (False, False, True)

def _seen():
    return torch.is_grad_enabled(), torch._C._is_torch_function_enabled(), torch._C._is_torch_function_all_disabled()

cdef class ThreadState:
    """Turns off gradients and everything of the run that is told of torch's functions, on the current thread.

    Raises:
        OSError, AttributeError: this torch has not all of the functions.
        RuntimeError: they are not what their names say.
    """

    def __init__(self):
        # What it depends on is searched too.
        library = CDLL(torch._C.__file__)
        addresses = [cast(getattr(library, name), c_void_p).value for name in _NAMES]
        self._has_gradients = <is_function> <uintptr_t> addresses[0]
        self._is_inference = <is_function> <uintptr_t> addresses[1]
        self._set_gradients = <set_gradients_function> <uintptr_t> addresses[2]
        self._dispatch_modes = <length_function> <uintptr_t> addresses[3]
        self._disabled = <disabled_function> <uintptr_t> addresses[4]
        self._disable = <disable_function> <uintptr_t> addresses[5]
        if not self._is_as_expected():
            raise RuntimeError("torch keeps what it knows of a thread in another way")

    cpdef int leave(self) except -2:
        """Returns what ``put_back`` needs, in which 4 stands for gradients; -1 where more is on than can be left here.

        In inference mode and inside dispatch modes, nothing is changed.
        """
        cdef int earlier
        if self._is_inference() or self._dispatch_modes():
            return -1
        earlier = self._disabled()
        if self._has_gradients():
            earlier |= GRADIENTS
            self._set_gradients(False)
        self._disable(ALL_DISABLED)
        return earlier

    cpdef put_back(self, int earlier):
        self._disable(earlier & ~GRADIENTS)
        if earlier & GRADIENTS:
            self._set_gradients(True)

    def _is_as_expected(self):
        with _disable_current_modes():
            with torch.inference_mode():
                if self.leave() != -1:
                    return False
            with torch.inference_mode(False):
                with TorchDispatchMode():
                    if self.leave() != -1:
                        return False
                return all(self._goes_and_comes_back(*state) for state in _STATES)

    def _goes_and_comes_back(self, with_gradients, functions):
        with torch.set_grad_enabled(with_gradients), functions():
            before = _seen()
            earlier = self.leave()
            apart = _seen()
            self.put_back(earlier)
            return bool(earlier & GRADIENTS) == with_gradients and apart == _APART and _seen() == before
