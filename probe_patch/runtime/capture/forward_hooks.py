"""Puts hooks around the forwards of many modules, and takes them off again."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

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
        self._modules: list[weakref.ref[nn.Module]] = []
        self._handles: list[RemovableHandle] = []

    def before(self, module: nn.Module, hook: Callable[..., None], *, with_kwargs: bool = False) -> None:
        """Have the hook called before each forward, as the last of those that are there now."""
        if type(module).register_forward_pre_hook is not nn.Module.register_forward_pre_hook:
            self._handles.append(module.register_forward_pre_hook(hook, with_kwargs=with_kwargs))
            return
        self._modules.append(weakref.ref(module))
        if with_kwargs:
            module._forward_pre_hooks_with_kwargs[self._number] = True
        module._forward_pre_hooks[self._number] = hook

    def after(self, module: nn.Module, hook: Callable[..., None], *, with_kwargs: bool = False) -> None:
        """Have the hook called after each forward, as the last of those that are there now, even if it raised."""
        if type(module).register_forward_hook is not nn.Module.register_forward_hook:
            self._handles.append(module.register_forward_hook(hook, with_kwargs=with_kwargs, always_call=True))
            return
        if self._number not in module._forward_pre_hooks:
            self._modules.append(weakref.ref(module))
        if with_kwargs:
            module._forward_hooks_with_kwargs[self._number] = True
        module._forward_hooks_always_called[self._number] = True
        module._forward_hooks[self._number] = hook

    def remove(self, failed: Callable[[Exception], None]) -> None:
        """Take all of them off; ``failed`` is told of those that will not go."""
        modules, self._modules = self._modules, []
        handles, self._handles = self._handles, []
        for handle in handles:
            try:
                handle.remove()
            except Exception as error:  # noqa: PERF203
                failed(error)
        for module in modules:
            try:
                self._take_off(module())
            except Exception as error:  # noqa: PERF203
                failed(error)

    def _take_off(self, module: Any) -> None:
        if module is not None:
            state = vars(module)
            for name in (*HOOKS, *MARKS):
                state[name].pop(self._number, None)
