"""Executes a version of SGLang's model_runner.py, patched or not, with everything it imports stubbed."""

import builtins
import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from unittest import mock

from probe_patch.debuggers import DebuggerName
from tests.harness.outside import Importer, Outside
from tests.harness.trace import Event, Recorder

FILE_NAME = "model_runner.py"
_MODULE = "sglang.srt.model_executor.model_runner"
_PROBE_MODULE = "probe_patch.runtime.sglang"


@dataclass
class RecordingProbe:
    """The stand-in for ``probe_patch.runtime.sglang.Probe``: writes down what it was given and when that was called."""

    config: str | None
    debugger: DebuggerName
    decorated: dict[str, Callable[..., Any]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def init(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self._decorate("init", function)

    def forward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self._decorate("forward", function)

    def _decorate(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        assert name not in self.decorated
        self.decorated[name] = function

        @functools.wraps(function)
        def call(*positional: object, **options: object) -> object:
            self.events.append((name, "begins"))
            try:
                return function(*positional, **options)
            finally:
                self.events.append((name, "ends"))

        return call


@dataclass(frozen=True)
class Loaded:
    """What executing the file gave.

    Attributes:
        runner: the class ``ModelRunner``.
        probe: the probe that its prelude made; None where it made none.
        imports: absolute names of the modules that the file asked for, in order.
    """

    runner: type
    probe: RecordingProbe | None
    imports: tuple[str, ...]


def load_model_runner(source: bytes, dump_on: str | None, stand_ins: Mapping[str, object] | None = None) -> Loaded:
    """Execute the file with ``DUMP_ON`` as given, and a recording probe in the place of ours.

    Args:
        source: the file's bytes.
        dump_on: the value of ``DUMP_ON``; None leaves it unset.
        stand_ins: what the file gets for the names it imports; everything else is ``Outside``.

    Raises:
        Exception: whatever the file raises while it is imported.
    """
    made: list[RecordingProbe] = []

    def make(config: str | None, debugger: DebuggerName) -> RecordingProbe:
        made.append(RecordingProbe(config, debugger))
        return made[-1]

    recorder = Recorder()
    module, ours = ModuleType(_MODULE), ModuleType(_PROBE_MODULE)
    vars(ours)["Probe"] = make
    module.__package__ = _MODULE.rpartition(".")[0]
    module.__file__ = FILE_NAME
    # A class cannot derive from an Outside.
    stand_ins = {"ModelRunnerKVCacheMixin": object, **(stand_ins or {})}
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": Importer(stand_ins, recorder)}
    with mock.patch.dict(os.environ), mock.patch.dict(sys.modules, {_MODULE: module, _PROBE_MODULE: ours}):
        os.environ.pop("DUMP_ON", None)
        if dump_on is not None:
            os.environ["DUMP_ON"] = dump_on
        exec(compile(source, FILE_NAME, "exec", dont_inherit=True), vars(module))
    return Loaded(vars(module)["ModelRunner"], made[0] if made else None, tuple(recorder.imports))


def without_addresses(text: str) -> str:
    """Of objects that a run makes, such as a lambda: they differ from run to run."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def outcome(function: Callable[..., Any]) -> str:
    """How a call ends, with an ``Outside`` for ``self`` and for every argument it needs."""
    parameters = inspect.signature(function).parameters.values()
    needed = [each for each in parameters if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
    try:
        how = f"returned {function(*(Outside(each.name, {'forward_pass_id': 0}) for each in needed))!r}"
    except Exception as error:
        how = f"raised {error!r}"
    return without_addresses(how)
