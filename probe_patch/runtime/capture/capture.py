"""Everything that is put on a model and on a thread while something is recorded, and its removal."""

from probe_patch.runtime.capture.functions.labels import Labels
from probe_patch.runtime.capture.functions.mode import FunctionMode, push, remove
from probe_patch.runtime.capture.modules import ModuleCapture
from probe_patch.runtime.capture.names import Model
from probe_patch.runtime.capture.session import Session
from probe_patch.runtime.store import Store


class Capture:
    """The recording of one store, from ``attach`` to ``detach``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._wanted = store.wanted
        self._session = Session(store)
        self._modules = ModuleCapture(self._session)
        self._mode: FunctionMode | None = None

    def attach(self, model: Model | None) -> None:
        """Begin. Functions are recorded on the calling thread."""
        if model is not None and self._wanted.modules:
            self._modules.attach(model)
        if self._wanted.functions is not None:
            self._mode = FunctionMode(self._session, Labels(self._wanted.functions))
            push(self._mode)

    def detach(self) -> None:
        """End the recording, on every thread, and take everything off again."""
        self._session.close()
        mode, self._mode = self._mode, None
        if mode is not None and not remove(mode):
            self._store.problems.note(
                "stopping", "it was stopped on another thread than it was started on, where torch still calls us"
            )
        self._modules.detach()
        self._session.gradients.remove()
