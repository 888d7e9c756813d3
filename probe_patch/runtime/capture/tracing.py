"""Whether torch only looks at what runs (torch.compile, torch.export, torch.jit.trace), or runs it in a backward."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch._C import _current_graph_task_id, _get_tracing_state

_COMPILER: Final[dict[str, Any]] = vars(torch.compiler)
_HAS_FLAG: Final = "_is_compiling_flag" in _COMPILER
_torch_is_compiling: Final = torch.compiler.is_compiling


def is_compiling() -> bool:
    """What ``torch.compiler.is_compiling`` says, which runs two functions to read a flag, where torch has that flag.

    It is for code that runs: torch.compile traces torch's own function, and not this one.
    """
    return bool(_COMPILER["_is_compiling_flag"]) if _HAS_FLAG else _torch_is_compiling()


def is_traced() -> bool:
    """Whether torch.compile or torch.jit.trace is looking at what runs."""
    return is_compiling() or _get_tracing_state() is not None


def inside_backward() -> bool:
    """Whether autograd is running a backward pass on this thread."""
    return _current_graph_task_id() != -1


def is_no_pass() -> bool:
    """Whether what runs is compiled, traced or recomputed."""
    return is_traced() or inside_backward()
