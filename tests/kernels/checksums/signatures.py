"""The checksum kernels' parameters as their launches give them, for compiling them without a device."""

from typing import Any, Final

from probe_patch.runtime.stats.checksums import kernels

BLOCKS: Final = {"crc32_kernel": 1024, "xor64_kernel": 2048}

_POINTERS: Final = {
    "crc32_kernel": {"bytes_ptr": "*u8"},
    "xor64_kernel": {"bytes_ptr": "*u8", "words_ptr": "*i64", "table_ptr": "*i64"},
}


def kernel(name: str) -> Any:
    return getattr(kernels, name)


def signature(name: str, whole: str = "i32") -> dict[str, str]:
    """The type of each parameter; ``whole`` is that of sizes."""
    types = {}
    for parameter in kernel(name).arg_names:
        usual = "constexpr" if parameter == "BLOCK" else "*i32" if parameter.endswith("_ptr") else whole
        types[parameter] = _POINTERS[name].get(parameter, usual)
    return types
