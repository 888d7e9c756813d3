"""``torch.distributed``: what each communication was given, and what its buffers hold when it is complete.

As msProbe records them (mindstudio-probe 26.2.0): ``output`` lists the values of all arguments once the communication
is complete, which is when it returns, or when the work that it gave back is waited for. Buffers that only receive are
null in the input, as they may never have been written.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from probe_patch.runtime.capture.functions.call_sites import Arguments
from probe_patch.runtime.capture.functions.trampolines import can_be_watched, unwatch, watch
from probe_patch.runtime.capture.functions.works import Works, ignore, listen, works_in
from probe_patch.runtime.capture.names import FunctionName

if TYPE_CHECKING:
    from types import FunctionType

    from probe_patch.runtime.capture.forwards import Call
    from probe_patch.runtime.capture.functions.calls import FunctionCalls
    from probe_patch.runtime.capture.session import Session

_RECORDED: Final = (
    *("send", "recv", "isend", "irecv", "batch_isend_irecv", "broadcast", "scatter", "gather", "reduce"),
    *("all_reduce", "all_gather", "_all_gather_base", "all_gather_into_tensor"),
    *("reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor", "all_to_all", "all_to_all_single"),
    # torch 2.13's names, which msProbe does not know yet.
    *("all_gather_single", "reduce_scatter_single"),
)

_RECEIVES: Final = {
    "recv": (0, "tensor"),
    "irecv": (0, "tensor"),
    "scatter": (0, "tensor"),
    "gather": (1, "gather_list"),
    "all_gather": (0, "tensor_list"),
    "_all_gather_base": (0, "output_tensor"),
    "all_gather_into_tensor": (0, "output_tensor"),
    "all_gather_single": (0, "output_tensor"),
    "reduce_scatter": (0, "output"),
    "_reduce_scatter_base": (0, "output"),
    "reduce_scatter_tensor": (0, "output"),
    "reduce_scatter_single": (0, "output"),
    "all_to_all": (0, "output_tensor_list"),
    "all_to_all_single": (0, "output"),
}
"""Which parameter only receives: its place and its name."""

_SENT: Final = {"isend": (0, "tensor")}
"""Which parameter tells nothing when the communication is complete."""

_UNFINISHED: Final = "{} were not waited for before the stop, so what they received is not recorded"
_COALESCED: Final = "it was queued to run together with others, so what it received is not recorded"


class Communication:
    """The recording of ``torch.distributed`` in one session, from ``attach`` to ``detach``."""

    def __init__(self, session: Session, calls: FunctionCalls) -> None:
        self._session = session
        self._calls = calls
        self._works = Works()
        self._watched: list[tuple[FunctionType, _Watcher]] = []

    def attach(self) -> None:
        """Watch the functions, if this process has loaded them."""
        distributed = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available():
            return
        for name in _RECORDED:
            function = getattr(distributed, name, None)
            if can_be_watched(function):
                watcher = _Watcher(name, self._session, self._calls, self._works)
                watch(function, watcher)
                self._watched.append((function, watcher))
        listen(self._works)

    def detach(self) -> None:
        """Put everything back as it was."""
        watched, self._watched = self._watched, []
        for function, watcher in watched:
            if not unwatch(function, watcher):
                self._note("stopping", f"somebody else has exchanged the code of {function.__name__} meanwhile")
        if not ignore(self._works):
            self._note("stopping", "somebody else has replaced Work.wait meanwhile")
        if self._works.unfinished:
            self._note("recording a communication", _UNFINISHED.format(self._works.unfinished))

    def _note(self, kind: str, problem: str) -> None:
        self._session.store.problems.note(kind, problem)


class _Begun:
    """One communication that is being made."""

    def __init__(self, call: Call, arguments: Arguments, is_coalesced: bool) -> None:
        self.call = call
        self.arguments = arguments
        self.is_coalesced = is_coalesced


class _Watcher:
    """Of one function."""

    def __init__(self, name: str, session: Session, calls: FunctionCalls, works: Works) -> None:
        self._name = FunctionName(f"Distributed.{name}")
        self._receives = _RECEIVES.get(name)
        self._sent = _SENT.get(name)
        self._session = session
        self._calls = calls
        self._works = works

    def begin(self, arguments: Arguments) -> _Begun | None:
        given = _without(arguments, self._receives)
        take = self._session.record_inputs
        call = self._calls.begin_watched(self._name, take, given, "recording a communication")
        return None if call is None else _Begun(call, arguments, _is_coalescing())

    def end(self, begun: _Begun, result: Any) -> None:
        self._calls.here().is_in_function = False
        # Who only sends gets nothing that would have to be waited for.
        works = [] if self._sent else works_in(result)
        try:
            if begun.is_coalesced:
                self._session.store.problems.note("recording a communication", _COALESCED)
            elif works:
                self._works.expect(works, partial(self._complete, begun))
            else:
                self._complete(begun)
        except Exception as error:
            self._calls.failed("recording a communication", error)

    def abandon(self, begun: _Begun) -> None:
        self._calls.abandon(self._calls.here(), begun.call)

    def _complete(self, begun: _Begun) -> None:
        if not self._session.enter():
            return
        try:
            held = _without(begun.arguments, self._sent)
            self._session.record_output(begun.call, (*held.args, *held.kwargs.values()))
            self._session.store.close_call(begun.call)
        except Exception as error:
            self._calls.failed("recording a communication", error)
        finally:
            self._session.leave()


def _without(arguments: Arguments, parameter: tuple[int, str] | None) -> Arguments:
    """The arguments with None for that of one parameter."""
    if parameter is None:
        return arguments
    place, name = parameter
    args = tuple(None if number == place else value for number, value in enumerate(arguments.args))
    return Arguments(args, arguments.kwargs | ({name: None} if name in arguments.kwargs else {}))


def _is_coalescing() -> bool:
    """Whether torch only collects communications now, to run them together later."""
    world = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    return bool(getattr(world, "pg_coalesce_state", None))
