"""Everything that sees functions being called during one session."""

from typing import Final

from probe_patch.runtime.capture.functions.calls import FunctionCalls
from probe_patch.runtime.capture.functions.communication import Communication
from probe_patch.runtime.capture.functions.custom import CustomApis, CustomCapture
from probe_patch.runtime.capture.functions.labels import Labels
from probe_patch.runtime.capture.functions.mode import FunctionMode
from probe_patch.runtime.capture.functions.risk import RiskLevel
from probe_patch.runtime.capture.functions.threads import ModeOnThreads
from probe_patch.runtime.capture.session import Session

_LEFT: Final = (
    "it was stopped on another thread than it was started on, or while a module was running on another thread, where "
    "torch still calls us"
)


class FunctionCapture:
    """The recording of functions, from ``attach`` to ``detach``."""

    def __init__(self, session: Session, level: RiskLevel) -> None:
        self._session = session
        calls = FunctionCalls(session)
        labels = Labels(level, session.wanted.namespaces)
        self._threads = session.threads = ModeOnThreads(FunctionMode(calls, labels, session))
        self._communication = Communication(session, calls)
        self._custom = CustomCapture(session, calls)

    def attach(self, apis: CustomApis) -> None:
        """Begin, on the calling thread and wherever modules of the model run."""
        self._threads.begin(self._session.here())
        self._communication.attach()
        self._custom.attach(apis)

    def detach(self) -> None:
        """Put everything back as it was."""
        # The other way round than it was put on, as a function may have been registered that is watched anyway.
        self._custom.detach()
        self._communication.detach()
        if self._threads.end(self._session.here()):
            # It refers to the session.
            self._session.threads = None
        else:
            self._session.store.problems.note("stopping", _LEFT)
