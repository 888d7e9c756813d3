"""Puts the hooks on a model, and takes them off again."""

import weakref
from typing import Final

import torch
from torch import nn

from probe_patch.runtime.capture.compiled import inside_compiled, is_compiled, is_wrapper
from probe_patch.runtime.capture.forward_hooks import ForwardHooks
from probe_patch.runtime.capture.hooks import AfterForward, AfterPass, BeforeForward, BeforePass, BeforeVisit
from probe_patch.runtime.capture.module_calls import ModuleCalls
from probe_patch.runtime.capture.names import Model, NamedModule, named_modules
from probe_patch.runtime.capture.parameters import OwnParameters
from probe_patch.runtime.capture.session import Session
from probe_patch.runtime.capture.tensor_hooks import is_backward_running
from probe_patch.runtime.capture.unhooked import Unhooked

_DisableTorchFunction: Final = torch._C.DisableTorchFunction

_COMPILED_WRAPPER: Final = "{name} runs compiled: what runs inside it is not recorded"
_COMPILED_IN_PLACE: Final = (
    "{name} was compiled with its compile() method: neither it nor what is inside it is recorded"
)


class ModuleCapture:
    """The hooks of one session on one model, from ``attach`` to ``detach``."""

    def __init__(self, session: Session) -> None:
        self._store = session.store
        self._session = session
        self._passes = ForwardHooks()
        self._calls = ForwardHooks()
        self._unhooked = Unhooked()
        self._hooked: list[weakref.ref[nn.Module]] = []
        self._parameters: list[OwnParameters] = []

    def attach(self, model: Model) -> None:
        """Hook every module; one that cannot be hooked (a scripted one, say) is left out and noted."""
        named_ones = named_modules(model)
        unseen = self._unseen(model, named_ones)
        for named in named_ones:
            try:
                parameters = self._watch_parameters(named)
                if id(named.module) not in unseen:
                    self._hook(named, parameters)
            except Exception as error:  # noqa: PERF203
                self._note_unhooked(named, error)

    def attach_unrecorded(self, model: Model) -> None:
        """Hook the modules only to know which threads they run on: at L1."""
        named_ones = named_modules(model)
        unseen = self._unseen(model, named_ones)
        before, after = BeforeVisit(self._session), AfterPass(self._session)
        for named in named_ones:
            if id(named.module) not in unseen:
                try:
                    self._hook_unrecorded(named, before, after)
                except Exception as error:
                    self._note_unhooked(named, error)

    def detach(self) -> None:
        """Remove every hook, whatever happens to single ones."""
        self._passes.remove_registered(self._note_left)
        self._calls.remove_registered(self._note_left)
        hooked, self._hooked = self._hooked, []
        for reference in hooked:
            module = reference()
            if module is not None:
                self._take_off(module)
        parameters, self._parameters = self._parameters, []
        with _DisableTorchFunction():
            self._session.dictionaries_stay = is_backward_running()
            for one in parameters:
                try:
                    one.remove()
                except Exception as error:  # noqa: PERF203
                    self._note_left(error)

    def _unseen(self, model: Model, named_ones: list[NamedModule]) -> set[int]:
        compiled = [named for named in named_ones if is_compiled(named.module)]
        for named in compiled:
            sentence = _COMPILED_WRAPPER if is_wrapper(named.module) else _COMPILED_IN_PLACE
            self._store.problems.note("seeing inside a compiled module", sentence.format(name=named.name.label))
        return inside_compiled(model) if compiled else set()

    def _watch_parameters(self, named: NamedModule) -> OwnParameters | None:
        if not self._session.takes_backward or _has_no_parameters(named.module):
            return None
        parameters = OwnParameters(self._session, named)
        self._parameters.append(parameters)
        return parameters if parameters.has_gradients() else None

    def _hook(self, named: NamedModule, parameters: OwnParameters | None) -> None:
        module, reference = named.module, weakref.ref(named.module)
        self._hooked.append(reference)
        if named.is_root:
            self._passes.before(module, BeforePass(self._session, named.name))
        calls = ModuleCalls(self._session, named.name, parameters)
        self._calls.before_with_keywords(module, BeforeForward(calls))
        self._calls.after(module, AfterForward(calls))
        if named.is_root:
            self._passes.after(module, AfterPass(self._session))
        self._unhooked.add(module, reference)

    def _hook_unrecorded(self, named: NamedModule, before: BeforeVisit, after: AfterPass) -> None:
        module, reference = named.module, weakref.ref(named.module)
        self._hooked.append(reference)
        self._passes.before(module, BeforePass(self._session, named.name) if named.is_root else before)
        self._passes.after(module, after)
        self._unhooked.add(module, reference)

    def _take_off(self, module: nn.Module) -> None:
        for hooks in (self._passes, self._calls):
            try:
                hooks.take_off(module)
            except Exception as error:  # noqa: PERF203
                self._note_left(error)
        self._unhooked.take_off(module)

    def _note_unhooked(self, named: NamedModule, error: Exception) -> None:
        self._store.problems.note("hooking a module", f"{named.name.label}: {type(error).__name__}: {error}")

    def _note_left(self, error: Exception) -> None:
        self._store.problems.note("removing a hook", error)


def _has_no_parameters(module: nn.Module) -> bool:
    return not module._parameters and type(module).named_parameters is nn.Module.named_parameters
