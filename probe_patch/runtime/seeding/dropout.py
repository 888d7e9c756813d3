"""Dropout that drops nothing."""

import functools
from collections.abc import Callable
from typing import Any, Final

import torch

_DROPOUTS: Final = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
_MARK: Final = "__probe_patch_drops_nothing__"


def remove_dropout() -> None:
    """Replace the dropout functions of ``torch.nn.functional``, for as long as the process lives.

    Modules of ``torch.nn`` keep their probability and call these. What was imported by name before, or calls
    ``torch.dropout`` or an attention kernel with a probability of its own, is not reached.
    """
    for name in _DROPOUTS:
        original = getattr(torch.nn.functional, name)
        if not hasattr(original, _MARK):
            setattr(torch.nn.functional, name, _dropping_nothing(original))


def _dropping_nothing(dropout: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(dropout)
    def keep(input: Any, p: float = 0.5, *args: Any, **kwargs: Any) -> Any:
        # A probability that is none still fails as it did.
        return dropout(input, 0.0 if 0.0 <= p <= 1.0 else p, *args, **kwargs)

    setattr(keep, _MARK, True)
    return keep
