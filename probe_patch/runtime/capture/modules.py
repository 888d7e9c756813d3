"""Puts the hooks on a model, and takes them off again."""

from typing import Final

from torch import nn
from torch.utils.hooks import RemovableHandle

from probe_patch.runtime.capture.hooks import AfterForward, AfterPass, BeforeForward, BeforePass
from probe_patch.runtime.capture.names import Model, ModuleName, NamedModule, named_submodules, root_modules
from probe_patch.runtime.capture.session import Session

_ROOT: Final = ModuleName("")


class ModuleCapture:
    """The hooks of one session on one model, from ``attach`` to ``detach``."""

    def __init__(self, session: Session) -> None:
        self._store = session.store
        self._session = session
        self._handles: list[RemovableHandle] = []

    def attach(self, model: Model) -> None:
        """Hook every sub-module; one that cannot be hooked (a scripted one, say) is left out and noted."""
        for root in root_modules(model):
            self._hook_root(root)
        for named in named_submodules(model):
            self._hook(named)

    def attach_unrecorded(self, model: Model) -> None:
        """Hook the modules only to know which threads they run on: at L1."""
        for root in root_modules(model):
            self._hook_root(root)
        for named in named_submodules(model):
            self._hook_root(named.module)

    def detach(self) -> None:
        """Remove every hook, whatever happens to single ones."""
        handles, self._handles = self._handles, []
        for handle in handles:
            self._remove(handle)

    def _hook_root(self, root: nn.Module) -> None:
        try:
            self._handles.append(root.register_forward_pre_hook(BeforePass(self._session, _ROOT)))
            self._handles.append(root.register_forward_hook(AfterPass(self._session, _ROOT), always_call=True))
        except Exception as error:
            self._store.problems.note("hooking a module", error)

    def _hook(self, named: NamedModule) -> None:
        before = BeforeForward(self._session, named.name)
        after = AfterForward(self._session, named.name)
        try:
            self._handles.append(named.module.register_forward_pre_hook(before, with_kwargs=True))
            self._handles.append(named.module.register_forward_hook(after, with_kwargs=True, always_call=True))
            if self._session.wanted.backward:
                self._handles += self._session.gradients.watch_parameters(named)
        except Exception as error:
            self._store.problems.note("hooking a module", error)

    def _remove(self, handle: RemovableHandle) -> None:
        try:
            handle.remove()
        except Exception as error:
            self._store.problems.note("removing a hook", error)
