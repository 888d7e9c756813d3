"""Keeps our hooks out of copies of a module: pickles, deep copies, scripted modules.

While a module is recorded, it has two methods of its own in its dictionary. Python asks an object, not its class, for
its state, and torch.jit.script asks a module whether it wants to be prepared. A class that has a way of its own to be
copied, as torch.fx.GraphModule has, would copy these methods too and does not get them.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from torch import nn

from probe_patch.runtime.capture.forward_hooks import HOOKS, MARKS

if TYPE_CHECKING:
    from probe_patch.runtime.capture.hooks import CallHook


class Unhooked:
    """The two methods of the modules of one session, from ``add`` to ``remove``."""

    def __init__(self, kind: type[CallHook]) -> None:
        """``kind`` is that of the hooks to keep out."""
        self._kind = kind
        self._put: list[tuple[weakref.ref[nn.Module], str, Method]] = []
        self._is_copied_by_state: dict[type, bool] = {}

    def add(self, module: nn.Module) -> None:
        """Put the two on a module that has none."""
        is_copied_by_state = self._is_copied_by_state.get(type(module))
        if is_copied_by_state is None:
            is_copied_by_state = self._is_copied_by_state[type(module)] = _is_copied_by_state(type(module))
        if is_copied_by_state:
            reference, own = weakref.ref(module), vars(module)
            for name, function in _METHODS:
                if name not in own:
                    method = own[name] = Method(function, reference, self._kind)
                    self._put.append((reference, name, method))

    def remove(self) -> None:
        """Take them off again."""
        put, self._put = self._put, []
        for reference, name, method in put:
            module = reference()
            if module is not None and vars(module).get(name) is method:
                del vars(module)[name]


class Method(partial[Any]):
    """A method in a module's dictionary that can be told from others."""


def _state(reference: weakref.ref[nn.Module], kind: type[CallHook]) -> Any:
    """What the module's own class gives as its state, without what is ours."""
    module = reference()
    given: Any = getattr(type(module), "__getstate__", None)
    state = dict(vars(module)) if given is None else given(module)
    return _without_ours(state, kind) if type(state) is dict else state


def _twin(reference: weakref.ref[nn.Module], kind: type[CallHook]) -> Any:
    """What stands in for the module while torch.jit.script looks at it; its class may have a say in that."""
    module = reference()
    prepare = getattr(type(module), "__prepare_scriptable__", None)
    prepared: Any = module if prepare is None else prepare(module)
    return _bare(prepared, kind) if isinstance(prepared, nn.Module) else prepared


_METHODS: Final = (("__getstate__", _state), ("__prepare_scriptable__", _twin))


def _bare(module: nn.Module, kind: type[CallHook]) -> nn.Module:
    """A module with the same parameters and sub-modules, in a dictionary of its own, as torch replaces these."""
    bare: nn.Module = object.__new__(type(module))
    vars(bare).update(_without_ours(vars(module), kind))
    vars(bare)["_modules"] = module._modules.copy()
    return bare


def _without_ours(state: dict[str, Any], kind: type[CallHook]) -> dict[str, Any]:
    ours = {key for name in HOOKS for key, hook in state.get(name, {}).items() if isinstance(hook, kind)}
    left: dict[str, Any] = {}
    for name, value in state.items():
        if name in (*HOOKS, *MARKS):
            left[name] = type(value)((key, kept) for key, kept in value.items() if key not in ours)
        elif not isinstance(value, Method):
            left[name] = value
    return left


def _is_copied_by_state(kind: type) -> bool:
    return all(getattr(kind, name) is getattr(object, name) for name in ("__reduce__", "__reduce_ex__")) and not any(
        hasattr(kind, name) for name in ("__copy__", "__deepcopy__")
    )
