"""Hooks on tensors that leave a tensor as it was once they are taken off."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from torch.autograd import graph

from probe_patch.runtime.capture.tracing import is_compiling

if TYPE_CHECKING:
    from types import FrameType

    from torch import Tensor

    from probe_patch.runtime.capture.session import Session


_ENGINE: Final = graph._engine_run_backward.__code__
"""Of what hands every backward pass to autograd, and waits for it."""


class TensorHook:
    """A hook of ours on a tensor, which it does not keep alive. It never raises and lets every gradient pass as it is.

    Hooks are put on by hand, in the way of ``Tensor.register_hook``, which with its handle takes several times as long.
    """

    __slots__ = ()

    # Who saves the tensor is not warned of the hook.
    __torch_unserializable__ = True

    def take(self, session: Session, gradient: Tensor) -> None:
        """What arrives is recorded in this session, if that is open."""
        if is_compiling() or not session.enter():
            return
        try:
            self._take(gradient)
        except Exception as error:
            session.store.problems.note("recording a gradient", error)
        finally:
            session.leave()

    def _take(self, gradient: Tensor) -> None:
        """Record what arrives. The session is entered."""
        raise NotImplementedError


class GradientHook(TensorHook):
    """One that is taken off by itself.

    torch makes a tensor's dictionary of hooks with the first one and leaves it when the last one goes. Where there was
    none before ours, there is none after them.
    """

    __slots__ = ("_hooks", "_session", "_tensor")

    def __init__(self, session: Session) -> None:
        self._session = session

    def put_on(self, tensor: Tensor) -> None:
        """``tensor`` requires gradients. The caller has seen to it that no torch function mode is on."""
        hooks: Any = tensor._backward_hooks
        is_ours = hooks is None or are_ours(hooks)
        if hooks is None:
            hooks = make_hooks(tensor, tensor.grad_fn)
        hooks[self] = self
        self._hooks: ref[Any] = ref(hooks)
        self._tensor = ref(tensor) if is_ours else None

    def remove(self) -> None:
        """Take it off again. Asks of the caller what ``put_on`` does."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self, None)
        if self._tensor is not None and not self._session.dictionaries_stay:
            unmake_hooks(self._tensor())

    def __call__(self, gradient: Tensor) -> None:
        self.take(self._session, gradient)


class FirstGradientHook(GradientHook):
    """Takes the first gradient alone: a later backward pass through the same graph brings others.

    Attributes:
        has_fired: whether it has come.
    """

    __slots__ = ("has_fired",)

    def __init__(self, session: Session) -> None:
        self._session = session
        self.has_fired = False

    def __call__(self, gradient: Tensor) -> None:
        if not self.has_fired:
            self.take(self._session, gradient)
            self.has_fired = True


def make_hooks(tensor: Tensor, node: Any) -> Any:
    """The dictionary of a tensor's hooks, where it has none yet; ``node`` is the one behind it, None of a leaf."""
    # An operation in place gives a tensor another node, and takes this dictionary off it.
    hooks: Any = OrderedDict()
    tensor._backward_hooks = hooks
    if node is not None:
        node._register_hook_dict(tensor)
    return hooks


def unmake_hooks(tensor: Tensor | None) -> None:
    """Take the dictionary off a tensor that had none before ours and is still there, if nobody's hook is in it."""
    if tensor is not None and tensor._backward_hooks is not None and not tensor._backward_hooks:
        tensor._backward_hooks = None


def is_backward_running() -> bool:
    """Whether autograd is at work for any thread: then it may be calling what a tensor's dictionary keeps alive."""
    frames: dict[int, FrameType | None] = {**sys._current_frames()}
    # A frame that a variable of its own refers to does not go without Python's garbage collector.
    frames[threading.get_ident()] = sys._getframe().f_back
    for frame in frames.values():
        while frame is not None:
            if frame.f_code is _ENGINE:
                return True
            frame = frame.f_back
    return False


def are_ours(hooks: Any) -> bool:
    """Whether there are hooks, and ours alone, so that there was no dictionary before them."""
    return bool(hooks) and all(isinstance(hook, TensorHook) for hook in hooks.values())
