"""Puts the hooks on a model, and takes them off again."""

from typing import Final, Protocol

from probe_patch.runtime.capture.compiled import inside_compiled, is_compiled_in_place, is_wrapper
from probe_patch.runtime.capture.hooks import AfterForward, AfterPass, BeforeForward, BeforePass, BeforeVisit, CallHook
from probe_patch.runtime.capture.names import Model, NamedModule, named_modules
from probe_patch.runtime.capture.parameters import OwnParameters
from probe_patch.runtime.capture.session import Session
from probe_patch.runtime.capture.unhooked import Unhooked

_COMPILED_WRAPPER: Final = "{name} runs compiled: what runs inside it is not recorded"
_COMPILED_IN_PLACE: Final = (
    "{name} was compiled with its compile() method: neither it nor what is inside it is recorded"
)


class Removable(Protocol):
    """What was put somewhere and can be taken off."""

    def remove(self) -> None: ...


class ModuleCapture:
    """The hooks of one session on one model, from ``attach`` to ``detach``."""

    def __init__(self, session: Session) -> None:
        self._store = session.store
        self._session = session
        self._handles: list[Removable] = []

    def attach(self, model: Model) -> None:
        """Hook every module; one that cannot be hooked (a scripted one, say) is left out and noted."""
        unseen = inside_compiled(model)
        for named in named_modules(model):
            self._note_compiled(named)
            try:
                parameters = self._watch_parameters(named)
                if id(named.module) not in unseen:
                    self._hook(named, parameters)
            except Exception as error:
                self._note_unhooked(named, error)

    def attach_unrecorded(self, model: Model) -> None:
        """Hook the modules only to know which threads they run on: at L1."""
        unseen = inside_compiled(model)
        for named in named_modules(model):
            self._note_compiled(named)
            if id(named.module) not in unseen:
                self._hook_unrecorded(named)

    def detach(self) -> None:
        """Remove every hook, whatever happens to single ones."""
        handles, self._handles = self._handles, []
        for handle in handles:
            self._remove(handle)

    def _note_compiled(self, named: NamedModule) -> None:
        if is_wrapper(named.module) or is_compiled_in_place(named.module):
            sentence = _COMPILED_WRAPPER if is_wrapper(named.module) else _COMPILED_IN_PLACE
            self._store.problems.note("seeing inside a compiled module", sentence.format(name=named.name.label))

    def _watch_parameters(self, named: NamedModule) -> OwnParameters | None:
        if not self._session.wanted.backward:
            return None
        parameters = OwnParameters(self._session, named)
        self._handles.append(parameters)
        return parameters if parameters.names else None

    def _hook(self, named: NamedModule, parameters: OwnParameters | None) -> None:
        name, module = named.name, named.module
        if named.is_root:
            self._handles.append(module.register_forward_pre_hook(BeforePass(self._session, name)))
        before, after = BeforeForward(self._session, name, parameters), AfterForward(self._session, name)
        self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
        self._handles.append(module.register_forward_hook(after, with_kwargs=True, always_call=True))
        if named.is_root:
            self._handles.append(module.register_forward_hook(AfterPass(self._session, name), always_call=True))
        self._handles.append(Unhooked(module, CallHook))

    def _hook_unrecorded(self, named: NamedModule) -> None:
        name, module = named.name, named.module
        before = BeforePass(self._session, name) if named.is_root else BeforeVisit(self._session, name)
        try:
            self._handles.append(module.register_forward_pre_hook(before))
            self._handles.append(module.register_forward_hook(AfterPass(self._session, name), always_call=True))
            self._handles.append(Unhooked(module, CallHook))
        except Exception as error:
            self._note_unhooked(named, error)

    def _note_unhooked(self, named: NamedModule, error: Exception) -> None:
        self._store.problems.note("hooking a module", f"{named.name.label}: {type(error).__name__}: {error}")

    def _remove(self, handle: Removable) -> None:
        try:
            handle.remove()
        except Exception as error:
            self._store.problems.note("removing a hook", error)
