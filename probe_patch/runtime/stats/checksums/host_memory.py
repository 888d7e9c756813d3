"""The bytes of a tensor on the host as Python sees them, without a copy and whether or not numpy is installed."""

import ctypes
from typing import Final

# torch warns of memory that is not to be written, though it only reads it here.
_WRITABLE: Final = 0x200

_view_of = ctypes.pythonapi.PyMemoryView_FromMemory
_view_of.restype = ctypes.py_object
_view_of.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)


def memory(address: int, size: int) -> memoryview:
    """The ``size`` bytes from ``address`` on, at least one, for as long as somebody else keeps them there."""
    view: memoryview = _view_of(address, size, _WRITABLE)
    return view
