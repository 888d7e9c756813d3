"""Calls of Triton's kernels with as little of the host's time as they can have."""

from typing import Any, Final

import triton

# From here on what was compiled takes all arguments of the kernel, the constants included.
_TAKES_ALL: Final = (3, 3)


class Launcher:
    """One kernel on one device.

    Triton finds what it has compiled by looking at every argument again, which takes longer than the launch. Our
    kernels depend on nothing but their constants and the alignment of pointers, so that the caller's key finds it.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._compiled: dict[object, Any] = {}
        self._is_lean = tuple(int(part) for part in triton.__version__.split(".")[:2]) >= _TAKES_ALL

    def __call__(
        self, key: object, programs: int, arguments: tuple[object, ...], constants: tuple[object, ...], warps: int
    ) -> None:
        """Launch without waiting.

        Args:
            key: the same for the same constants and alignments, and only for them.
            programs: how many run.
            arguments: those that come before the constants: tensors and whole numbers.
            warps: of one program.
        """
        grid = (programs, 1, 1)
        compiled = self._compiled.get(key)
        if compiled is not None:
            compiled[grid](*arguments, *constants)
            return
        compiled = self._kernel[grid](*arguments, *constants, num_warps=warps)
        # The interpreter compiles nothing.
        if self._is_lean and compiled is not None:
            self._compiled[key] = compiled
