"""Records one call of a function, whoever has seen it: what it was given, what it gave, that it raised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from torch._C import _current_graph_task_id, _get_tracing_state

from probe_patch.runtime.capture.frames import outside

if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_patch.runtime.capture.forwards import Call
    from probe_patch.runtime.capture.functions.call_sites import Arguments
    from probe_patch.runtime.capture.names import FunctionName
    from probe_patch.runtime.capture.nesting import Nesting
    from probe_patch.runtime.capture.session import Session

    Take: TypeAlias = Callable[[Call, tuple[Any, ...], dict[str, Any]], None]


class FunctionCalls:
    """The calls of functions in one session. Of calls within each other on one thread, the outermost is recorded.

    What is asked of the current thread is asked of its nesting, ``here``, which to find takes as long as to ask.

    Calls inside a backward pass are not: recomputation repeats functions there, and as further calls they would shift
    the numbers of all later ones.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.take_inputs: Take = session.take_inputs

    def here(self) -> Nesting:
        """Of the current thread."""
        return self._session.here()

    def are_recorded(self, here: Nesting) -> bool:
        """Whether a call on this thread is one to record. Quick, and without the session's lock."""
        return (
            self._session.is_open
            and not here.is_in_function
            and _current_graph_task_id() == -1
            and _get_tracing_state() is None
            and not here.is_in_anothers_module()
        )

    def begin(
        self, here: Nesting, name: FunctionName, take: Take, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Call | None:
        """Open a call; ``take`` records what it is given. None where it is not recorded."""
        session = self._session
        if not session.enter():
            return None
        try:
            call = session.open_function(here, name)
            unchanged = here.unchanged
            if unchanged is not None:
                session.store.recorder.known = unchanged.in_function(outside())
            take(call, args, kwargs)
        finally:
            session.leave()
        here.is_in_function = True
        return call

    def begin_watched(self, name: FunctionName, take: Take, arguments: Arguments, kind: str) -> Call | None:
        """``begin`` for a function that every thread is watched for: None too on those that nothing is recorded on.

        It never raises; ``kind`` says what we are doing.
        """
        try:
            here = self.here()
            if not here.has_mode or not self.are_recorded(here):
                return None
            # Code that is watched is anybody's.
            here.unchanged = None
            return self.begin(here, name, take, arguments.args, arguments.kwargs)
        except Exception as error:
            self.failed(kind, error)
            return None

    def abandon(self, here: Nesting, call: Call) -> None:
        """The function raised: what went into it is recorded."""
        here.is_in_function = False
        if not self._session.enter():
            return
        try:
            self._session.store.close_call(call)
        finally:
            self._session.leave()

    def end(self, here: Nesting, call: Call, output: Any) -> None:
        """The function has given ``output``."""
        session = self._session
        here.is_in_function = False
        if not session.enter():
            return
        try:
            unchanged = here.unchanged
            if unchanged is not None:
                session.store.recorder.known = unchanged.in_function(outside())
            session.take_output(call, output)
            session.store.close_call(call)
        except Exception as error:
            self.failed("recording a function's output", error)
        finally:
            session.leave()

    def failed(self, kind: str, error: Exception) -> None:
        self._session.store.problems.note(kind, error)
