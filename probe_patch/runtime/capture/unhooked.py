"""Keeps our hooks out of copies of a module: pickles, deep copies, scripted modules.

While a module is recorded, it has two methods of its own in its dictionary. Python asks an object, not its class, for
its state, and torch.jit.script asks a module whether it wants to be prepared. A class that has a way of its own to be
copied, as torch.fx.GraphModule has, would copy these methods too and does not get them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

from probe_patch.runtime.capture.forward_hooks import HOOKS, MARKS
from probe_patch.runtime.capture.hooks import CallHook

if TYPE_CHECKING:
    import weakref


class Unhooked:
    """The two methods of the modules of one session, from ``add`` to ``take_off``."""

    def __init__(self) -> None:
        self._is_copied_by_state: dict[type, bool] = {}

    def add(self, module: nn.Module, reference: weakref.ref[nn.Module]) -> None:
        """Put the two on a module that has none; ``reference`` is to it."""
        kind = type(module)
        is_copied_by_state = self._is_copied_by_state.get(kind)
        if is_copied_by_state is None:
            is_copied_by_state = self._is_copied_by_state[kind] = _is_copied_by_state(kind)
        if not is_copied_by_state:
            return
        own = vars(module)
        if "__getstate__" not in own:
            own["__getstate__"] = State(reference, self)
        if "__prepare_scriptable__" not in own:
            own["__prepare_scriptable__"] = Twin(reference, self)

    def take_off(self, module: nn.Module) -> None:
        """Take those off that were put on this module here."""
        own = vars(module)
        for name in ("__getstate__", "__prepare_scriptable__"):
            method = own.get(name)
            if isinstance(method, Method) and method.of is self:
                del own[name]


class Method:
    """A method in a module's dictionary that can be told from others.

    Attributes:
        of: who has put it there; None of a copy.
    """

    __slots__ = ("_module", "of")

    def __init__(self, module: weakref.ref[nn.Module], of: Unhooked | None) -> None:
        self._module = module
        self.of = of

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._module, None)


class State(Method):
    """``__getstate__``: what the module's own class gives as its state, without what is ours."""

    __slots__ = ()

    def __call__(self) -> Any:
        module = self._module()
        given: Any = getattr(type(module), "__getstate__", None)
        state = dict(vars(module)) if given is None else given(module)
        return _without_ours(state) if type(state) is dict else state


class Twin(Method):
    """``__prepare_scriptable__``: what stands in for the module while torch.jit.script looks at it; its class may have
    a say in that."""

    __slots__ = ()

    def __call__(self) -> Any:
        module = self._module()
        prepare = getattr(type(module), "__prepare_scriptable__", None)
        prepared: Any = module if prepare is None else prepare(module)
        return _bare(prepared) if isinstance(prepared, nn.Module) else prepared


def _bare(module: nn.Module) -> nn.Module:
    """A module with the same parameters and sub-modules, in a dictionary of its own, as torch replaces these."""
    bare: nn.Module = object.__new__(type(module))
    vars(bare).update(_without_ours(vars(module)))
    vars(bare)["_modules"] = module._modules.copy()
    return bare


def _without_ours(state: dict[str, Any]) -> dict[str, Any]:
    ours = {key for name in HOOKS for key, hook in state.get(name, {}).items() if isinstance(hook, CallHook)}
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
