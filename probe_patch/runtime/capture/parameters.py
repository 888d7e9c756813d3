"""The gradients of parameters: each backward pass through one is a firing, and firings are numbered."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor

from probe_patch.runtime.capture.tensor_hooks import GradientHook

if TYPE_CHECKING:
    from collections.abc import Collection

    from torch import nn

    from probe_patch.runtime.capture.names import ModuleName, NamedModule
    from probe_patch.runtime.capture.session import Session

_DisableTorchFunction: Final = torch._C.DisableTorchFunction

_ADDED_ELSEWHERE: Final = (
    "a fused kernel added the gradient of {parameter} of {module} to its main_grad, and what reaches autograd in its "
    "place holds no numbers; train with --no-gradient-accumulation-fusion to have it recorded"
)


class OwnParameters:
    """Those of one module, not of its children.

    While the module runs, others may stand in for them: FSDP computes with gathered ones, and the gradient that
    arrives is theirs. These are found when a forward begins.
    """

    def __init__(self, session: Session, named: NamedModule) -> None:
        self._session = session
        self._module = named.name
        self._hooks: list[GradientHook] = []
        self._latest: dict[str, weakref.ref[Tensor]] = {}
        self._earlier: dict[tuple[str, int], weakref.ref[Tensor]] = {}
        with _DisableTorchFunction():
            for name, parameter in named.module._parameters.items():
                if parameter is not None and parameter.requires_grad:
                    self._hook(name, parameter)

    def has_gradients(self) -> bool:
        """Whether there is one that gets a gradient."""
        return bool(self._latest)

    def find_stand_ins(self, module: nn.Module) -> None:
        """Hook what the module is about to compute with, where that is not what is hooked already."""
        for name, latest in self._latest.items():
            tensor: Any = module._parameters.get(name)
            if tensor is None or tensor is not latest():
                self._find_stand_in(name, module)

    def remove(self) -> None:
        """Take the hooks off. The caller has seen to it that no torch function mode is on."""
        hooks, self._hooks = self._hooks, []
        for hook in hooks:
            hook.remove()

    def _find_stand_in(self, name: str, module: nn.Module) -> None:
        tensor: Any = module._parameters.get(name)
        if tensor is None:
            tensor = getattr(module, name, None)
        if not isinstance(tensor, Tensor):
            return
        with _DisableTorchFunction():
            if tensor.requires_grad:
                self._take_turn(name, tensor)

    def _take_turn(self, name: str, tensor: Tensor) -> None:
        """Another tensor stands under this name. It is hooked once, however often it takes its turn with others."""
        self._earlier = {key: earlier for key, earlier in self._earlier.items() if earlier() is not None}
        replaced = self._latest[name]
        before = replaced()
        if before is not None:
            self._earlier[name, id(before)] = replaced
        earlier = self._earlier.get((name, id(tensor)))
        if earlier is None:
            self._hook(name, tensor)
        else:
            self._latest[name] = earlier

    def _hook(self, name: str, tensor: Tensor) -> None:
        reference = self._latest[name] = weakref.ref(tensor)
        hook = _ParameterGradient(self._session, self._module, name, reference, self._latest)
        hook.put_on(tensor)
        self._hooks.append(hook)


class _ParameterGradient(GradientHook):
    """The hook of one parameter."""

    __slots__ = ("_module", "_name", "_parameter", "_siblings")

    def __init__(
        self,
        session: Session,
        module: ModuleName,
        name: str,
        parameter: weakref.ref[Tensor],
        siblings: Collection[str],
    ) -> None:
        self._session = session
        self._module = module
        self._name = name
        self._parameter = parameter
        self._siblings = siblings

    def _take(self, gradient: Tensor) -> None:
        store = self._session.store
        entry = store.parameters_gradient(self._module, self._name)
        if store.selection.takes_parameters_of(self._module) and store.admits(entry):
            self._record(entry, gradient)

    def _record(self, entry: str, gradient: Tensor) -> None:
        store = self._session.store
        # Megatron-core's mark, which Transformer Engine sets too.
        if getattr(self._parameter(), "grad_added_to_main_grad", False):
            reason = _ADDED_ELSEWHERE.format(parameter=self._name, module=self._module.label)
            store.problems.note("recording a parameter's gradient", reason)
            return
        record = store.recorder.parameter_gradient(entry, self._name, gradient)
        store.add_parameter_gradient(entry, self._name, record, len(self._siblings))
