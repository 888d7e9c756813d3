"""What hooks do before and after the forward of a module, where it runs and torch does not only look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probe_patch.runtime.capture.tracing import is_no_pass, is_traced

if TYPE_CHECKING:
    from torch import nn

    from probe_patch.runtime.capture.module_calls import ModuleCalls
    from probe_patch.runtime.capture.names import ModuleName
    from probe_patch.runtime.capture.session import Session


class BeginsCall:
    """Opens the call and measures its inputs, which an in-place module is about to overwrite.

    While a hook before a forward is being registered or removed, torch may call it on another thread without the
    keyword arguments. Such a call records nothing.
    """

    __slots__ = ("_calls",)

    def __init__(self, calls: ModuleCalls) -> None:
        self._calls = calls

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        if kwargs is not None and not is_traced():
            self._calls.begin(module, args, kwargs)


class EndsCall:
    """Measures the outputs and closes the call; called too when the forward raised, then without an output."""

    __slots__ = ("_calls",)

    def __init__(self, calls: ModuleCalls) -> None:
        self._calls = calls

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not is_traced():
            self._calls.end(module, output)


class BeginsPass:
    """On a root of the model: a pass begins, maybe inside another one."""

    __slots__ = ("_name", "_session")

    def __init__(self, session: Session, name: ModuleName) -> None:
        self._session = session
        self._name = name

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not is_no_pass():
            self._session.enter_pass(self._name)


class BeginsVisit:
    """On a module that is not recorded itself: the functions that run inside it may be."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not is_no_pass():
            self._session.enter_visit()


class EndsVisit:
    """On a root of the model, or a module that is not recorded: a pass or visit is over, however it ended."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not is_no_pass():
            self._session.leave_visit()
