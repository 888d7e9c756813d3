"""The compiled kernels of the host, if they were built when the package was installed."""

import ctypes
import os
import struct
from functools import cache
from pathlib import Path
from typing import Final

import torch

ABI: Final = 1
"""Of ``native/library.c``; a library that was built from other sources is not used."""

FILE: Final = Path(__file__).parent / "native" / "statistics.so"

_DTYPES: Final = (
    *("float32", "bfloat16", "float16", "float64", "complex64", "complex128", "complex32"),
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
)

DTYPES: Final = {getattr(torch, name): code for code, name in enumerate(_DTYPES) if hasattr(torch, name)}
"""What the library calls them."""

WITH_COUNTS: Final = 1 << 8
NEGATED: Final = 1 << 9


class Library:
    """The functions of the library; see ``native/library.c`` for what they take.

    Those that hold Python's lock are for what is over sooner than the lock can be given up and taken again.

    Raises:
        OSError: there is none, or it is for another machine.
        ValueError: it is not whole, or was built from other sources.
    """

    def __init__(self, file: Path = FILE) -> None:
        _check_whole(file)
        holding, releasing = ctypes.PyDLL(str(file)), ctypes.CDLL(str(file))
        try:
            found = holding.probe_patch_abi()
        except AttributeError:
            found = None
        if found != ABI:
            raise ValueError(f"{file} was built from other sources (it has version {found}, not {ABI})")
        self.level: int = holding.probe_patch_level()
        self.limit = holding.probe_patch_limit
        self.measure_many = holding.probe_patch_measure_many
        self.measure_many.argtypes, self.measure_many.restype = (ctypes.c_char_p, ctypes.c_int64), None
        self.measure = releasing.probe_patch_measure
        self.measure.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
        self.measure.restype = None
        self.measure_strided = releasing.probe_patch_measure_strided
        self.measure_strided.argtypes = (
            *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p),
            *(ctypes.c_int64, ctypes.c_void_p),
        )
        self.measure_strided.restype = ctypes.c_int64
        self.addresses = _address(self.measure), _address(self.measure_strided)


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def _check_whole(file: Path) -> None:
    """Of a file that was cut off, what is missing would end the process when it is touched.

    The table of sections is the last thing in a library; where it is, how long its items are and how many there are
    stands at bytes 40, 58 and 60 of the header (ELF, 64 bits).

    Raises:
        OSError: it cannot be read.
        ValueError: something is missing.
    """
    with file.open("rb") as library:
        header = library.read(64)
        size = library.seek(0, os.SEEK_END)
    if header[:5] != b"\x7fELF\x02":
        return
    if len(header) == 64:
        (at,), (length, count) = struct.unpack_from("=Q", header, 40), struct.unpack_from("=HH", header, 58)
        if at + length * count <= size:
            return
    raise ValueError(f"{file} was cut off after {size} bytes")


@cache
def library() -> Library:
    """The library of this process.

    Raises:
        as ``Library``.
    """
    return Library()
