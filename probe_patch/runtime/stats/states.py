"""Whether a tensor is the same one still, and as it was: asked twice for most that are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from probe_patch.runtime.stats.tensor_calls import tensor_calls

if TYPE_CHECKING:
    from torch import Tensor

    from probe_patch.runtime.stats.quick_states import QuickStates

# As many writes can be told apart where it is not compiled, too.
_VERSION_BITS: Final = 16


def _quick_states() -> QuickStates | None:
    """Where it is compiled, and torch has what it is made of."""
    calls = tensor_calls()
    if calls is None:
        return None
    try:
        from probe_patch.runtime.stats.quick_states import QuickStates

        return QuickStates(calls)
    except (ImportError, AttributeError, KeyError, TypeError):
        return None


_quick: Final = _quick_states()


def state_of(tensor: Tensor) -> int | None:
    """A number that this plain tensor has until torch writes into it, and that no other has while it is there.

    Returns:
        None where torch does not count how often it writes: of tensors that were made in inference mode.
    """
    return asked_for_state(tensor) if _quick is None else _quick.of(tensor)


def asked_for_state(tensor: Tensor) -> int | None:
    """``state_of``, asked by the tensor's methods."""
    if tensor.is_inference() or tensor._version >> _VERSION_BITS:
        return None
    return id(tensor) << _VERSION_BITS | tensor._version
