"""What is done about a call that the torch function mode has seen."""

from __future__ import annotations

from types import MethodWrapperType
from typing import TYPE_CHECKING, Any

from probe_patch.runtime.capture.frames import outside
from probe_patch.runtime.capture.functions.operators import operator_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_patch.runtime.capture.forwards import Call
    from probe_patch.runtime.capture.functions.calls import FunctionCalls
    from probe_patch.runtime.capture.functions.labels import Label, Labels
    from probe_patch.runtime.capture.nesting import Nesting


class SeenCalls:
    """Runs what the mode has seen, and records it where it has a name and this is the place to.

    Optimizers ask tensors for their properties time and again, by what Python calls method wrappers: no functions.
    """

    def __init__(self, calls: FunctionCalls, labels: Labels) -> None:
        self._calls = calls
        self._labels = labels

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Call the function, which may raise; nothing else here does."""
        if type(function) is MethodWrapperType:
            return function(*args)
        call = here = None
        try:
            label = self._labels.of(function)
            if label is not None:
                here = self._calls.here()
                if self._calls.are_recorded(here):
                    call = self._begin(here, label, function, args, kwargs or {})
        except Exception as error:
            self._calls.failed("recording a function's inputs", error)
        if call is None or here is None:
            return function(*args, **kwargs) if kwargs else function(*args)
        try:
            output = function(*args, **kwargs) if kwargs else function(*args)
        except BaseException:
            self._calls.abandon(here, call)
            raise
        self._calls.end(here, call, output)
        return output

    def _begin(
        self, here: Nesting, label: Label, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Call | None:
        name = label.name
        if label.may_be_operator:
            operator = operator_at(outside(), function)
            if operator is not None:
                called = label.of_operator(operator, self._labels)
                if called is None:
                    return None
                name = called
        if label.passed is not None:
            passed = label.passed.of(outside(), args, kwargs)
            args, kwargs = passed.args, passed.kwargs
        call = self._calls.begin(here, name, self._calls.take_inputs, args, kwargs)
        if call is not None:
            call.is_sealed = label.is_in_c
        return call
