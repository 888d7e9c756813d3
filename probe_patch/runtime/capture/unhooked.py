"""Keeps our hooks out of copies of a module: pickles, deep copies, scripted modules.

While a module is recorded, it has two methods of its own in its dictionary. Python asks an object, not its class, for
its state, and torch.jit.script asks a module whether it wants to be prepared. A class that has a way of its own to be
copied, as torch.fx.GraphModule has, would copy these methods too and does not get them.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

from torch import nn

if TYPE_CHECKING:
    from probe_patch.runtime.capture.hooks import CallHook

_METHODS: Final = ("__getstate__", "__prepare_scriptable__")
_HOOKS: Final = ("_forward_pre_hooks", "_forward_hooks")
_MARKS: Final = ("_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs", "_forward_hooks_always_called")


class Unhooked:
    """The two methods of one module, from its construction to ``remove``."""

    def __init__(self, module: nn.Module, kind: type[CallHook]) -> None:
        self._module = weakref.ref(module)
        self._kind = kind
        self._methods = dict(zip(_METHODS, (_Method(self.state), _Method(self.twin)), strict=True))
        for name, method in self._methods.items() if _is_copied_by_state(type(module)) else ():
            if name not in vars(module):
                vars(module)[name] = method

    def remove(self) -> None:
        module = self._module()
        for name, method in self._methods.items():
            if module is not None and vars(module).get(name) is method:
                del vars(module)[name]

    def state(self) -> Any:
        """What the module's own class gives as its state, without what is ours."""
        module = self._module()
        given: Any = getattr(type(module), "__getstate__", None)
        state = dict(vars(module)) if given is None else given(module)
        return self._without_ours(state) if type(state) is dict else state

    def twin(self) -> Any:
        """What stands in for the module while torch.jit.script looks at it; its class may have a say in that."""
        module = self._module()
        prepare = getattr(type(module), "__prepare_scriptable__", None)
        prepared: Any = module if prepare is None else prepare(module)
        return self._bare(prepared) if isinstance(prepared, nn.Module) else prepared

    def _bare(self, module: nn.Module) -> nn.Module:
        """A module with the same parameters and sub-modules, in a dictionary of its own, as torch replaces these."""
        bare: nn.Module = object.__new__(type(module))
        vars(bare).update(self._without_ours(vars(module)))
        vars(bare)["_modules"] = module._modules.copy()
        return bare

    def _without_ours(self, state: dict[str, Any]) -> dict[str, Any]:
        ours = {key for name in _HOOKS for key, hook in state.get(name, {}).items() if isinstance(hook, self._kind)}
        left: dict[str, Any] = {}
        for name, value in state.items():
            if name in (*_HOOKS, *_MARKS):
                left[name] = type(value)((key, kept) for key, kept in value.items() if key not in ours)
            elif not (name in _METHODS and isinstance(value, _Method)):
                left[name] = value
        return left


class _Method:
    """A bound method that can be told from others."""

    def __init__(self, method: Any) -> None:
        self._method = method

    def __call__(self) -> Any:
        return self._method()


def _is_copied_by_state(kind: type) -> bool:
    return all(getattr(kind, name) is getattr(object, name) for name in ("__reduce__", "__reduce_ex__")) and not any(
        hasattr(kind, name) for name in ("__copy__", "__deepcopy__")
    )
