"""Puts hooks around the forwards of many modules, and takes them off again."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from torch import nn
from torch.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from collections.abc import Callable

HOOKS: Final = ("_forward_pre_hooks", "_forward_hooks")
MARKS: Final = ("_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs", "_forward_hooks_always_called")


class ForwardHooks:
    """One hook before and one after the forward of each module.

    torch's own registration takes microseconds per hook, for a number, a handle and weak references. Here all hooks
    have one number, which torch gives to no other, and are entered where torch would enter them. A class that registers
    hooks in its own way, or refuses them, is asked.
    """

    def __init__(self) -> None:
        self._number = RemovableHandle(OrderedDict()).id
        self._handles: list[RemovableHandle] = []
        self._as_torch: dict[type, bool] = {}

    def before(self, module: nn.Module, hook: Callable[..., None]) -> None:
        """Have the hook called before each forward, as the last of those that are there now; ``after`` comes later."""
        if not self._are_entered(type(module)):
            self._handles.append(module.register_forward_pre_hook(hook))
            return
        vars(module)["_forward_pre_hooks"][self._number] = hook

    def before_with_keywords(self, module: nn.Module, hook: Callable[..., None]) -> None:
        """``before`` for a hook that is given the keyword arguments as well."""
        if not self._are_entered(type(module)):
            self._handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
            return
        own = vars(module)
        own["_forward_pre_hooks_with_kwargs"][self._number] = True
        own["_forward_pre_hooks"][self._number] = hook

    def after(self, module: nn.Module, hook: Callable[..., None]) -> None:
        """Have the hook called after each forward, as the last of those that are there now, even if it raised."""
        if not self._are_entered(type(module)):
            self._handles.append(module.register_forward_hook(hook, always_call=True))
            return
        own = vars(module)
        own["_forward_hooks_always_called"][self._number] = True
        own["_forward_hooks"][self._number] = hook

    def take_off(self, module: nn.Module) -> None:
        """Take both off this module, unless its class was asked to register them."""
        own = vars(module)
        for name in _ENTERED_IN:
            entries = own[name]
            if self._number in entries:
                del entries[self._number]

    def remove_registered(self, failed: Callable[[Exception], None]) -> None:
        """Take off what classes were asked to register; ``failed`` is told of hooks that will not go."""
        handles, self._handles = self._handles, []
        for handle in handles:
            try:
                handle.remove()
            except Exception as error:  # noqa: PERF203
                failed(error)

    def _are_entered(self, kind: type[nn.Module]) -> bool:
        known = self._as_torch.get(kind)
        if known is None:
            known = self._as_torch[kind] = _registers_as_torch(kind)
        return known


_ENTERED_IN: Final = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks_always_called",
)


def _registers_as_torch(kind: type[nn.Module]) -> bool:
    return (
        kind.register_forward_pre_hook is nn.Module.register_forward_pre_hook
        and kind.register_forward_hook is nn.Module.register_forward_hook
    )
