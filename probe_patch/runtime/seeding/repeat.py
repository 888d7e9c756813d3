"""Random functions each of whose calls draws what the first one after seeding would."""

import functools
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch

_MARK: Final = "__probe_patch_repeats__"

# What sets or shows a generator's state, or makes another one.
_NO_DRAWS: Final = frozenset({"seed", "getstate", "setstate", "get_state", "set_state"})

_OF_TORCH: Final = (
    *("bernoulli", "binomial", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like"),
    *("randn", "randn_like", "randperm"),
)
_OF_TENSORS: Final = (
    *("bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "multinomial", "normal_"),
    *("random_", "uniform_"),
)

# No methods of its one generator, but functions that call it.
_NUMPYS_OWN: Final = ("ranf", "sample")


@dataclass
class _Generators:
    """The states that every draw begins with; for devices, whose states cannot be read for free, their seed."""

    seed: int
    python: Any
    numpy: Any
    torch: Any

    def rewind(self) -> None:
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)
        torch.set_rng_state(self.torch)
        for device in ("cuda", "npu"):
            on_device = getattr(torch, device, None)
            if on_device is not None and on_device.is_initialized():
                on_device.manual_seed_all(self.seed)


_begin: _Generators | None = None


def repeat_every_draw(seed: int) -> None:
    """Replace the random functions of Python, NumPy and torch, for as long as the process lives. All are just seeded.

    Generators that the program makes for itself are not touched.
    """
    global _begin
    numpy = sys.modules.get("numpy")
    _begin = _Generators(
        seed, random.getstate(), None if numpy is None else numpy.random.get_state(), torch.get_rng_state()
    )
    for owner, name in _places(numpy):
        original = getattr(owner, name)
        if not hasattr(original, _MARK):
            setattr(owner, name, _repeating(original))


def _places(numpy: Any) -> Iterator[tuple[Any, str]]:
    yield from ((torch, name) for name in _OF_TORCH)
    yield from ((torch.Tensor, name) for name in _OF_TENSORS)
    yield from ((random, name) for name in _draws_of(random, _shared(random.random)))
    if numpy is not None:
        yield from ((numpy.random, name) for name in _NUMPYS_OWN if hasattr(numpy.random, name))
        yield from ((numpy.random, name) for name in _draws_of(numpy.random, _shared(numpy.random.random)))


def _shared(draw: object) -> object:
    """The generator whose method a function of a module is."""
    return getattr(draw, "__self__", None)


def _draws_of(module: Any, shared: object) -> list[str]:
    """The module's functions that are methods of the one generator they share."""
    return [
        name
        for name in dir(module)
        if _shared(getattr(module, name)) is shared and name.strip("_") == name
        if name not in _NO_DRAWS
    ]


def _repeating(draw: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(draw)
    def repeat(*args: Any, **kwargs: Any) -> Any:
        if _begin is None:
            return draw(*args, **kwargs)
        _begin.rewind()
        try:
            return draw(*args, **kwargs)
        finally:
            _begin.rewind()

    setattr(repeat, _MARK, True)
    return repeat
