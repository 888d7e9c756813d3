"""Stands for every module that the actor imports and that is neither Python's own nor ours."""

import builtins
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType

from tests.harness.trace import Recorder


class Outside:
    """A module, or anything got from one: every attribute, call and item is another ``Outside``.

    An attribute whose name is among the stand-ins is the stand-in, whatever it is reached through, so that
    ``from .model import train`` and ``megatron_utils.train`` find the same function.
    """

    def __init__(self, name: str, stand_ins: Mapping[str, object]) -> None:
        self._name = name
        self._stand_ins = stand_ins

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._stand_ins:
            return self._stand_ins[name]
        return Outside(f"{self._name}.{name}", self._stand_ins)

    def __call__(self, *arguments: object, **options: object) -> "Outside":
        return Outside(f"{self._name}()", self._stand_ins)

    def __getitem__(self, key: object) -> "Outside":
        return Outside(f"{self._name}[]", self._stand_ins)

    def __iter__(self) -> Iterator[object]:
        return iter(())

    def __or__(self, other: object) -> "Outside":
        return self

    def __enter__(self) -> "Outside":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None

    def __repr__(self) -> str:
        return f"<outside: {self._name}>"


class Importer:
    """An ``__import__`` for one module: Python's own modules and ours are real, all others are ``Outside``.

    Nothing is put in ``sys.modules`` and no finder is installed: only code whose globals hold this function sees it.
    """

    def __init__(self, stand_ins: Mapping[str, object], recorder: Recorder) -> None:
        self._stand_ins = stand_ins
        self._recorder = recorder

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> object:
        package = str(globals["__package__"]) if globals and level else None
        absolute = importlib.util.resolve_name("." * level + name, package)
        self._recorder.imports.append(absolute)
        top = absolute.partition(".")[0]
        if top in sys.stdlib_module_names or top == "probe_patch":
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        return Outside(absolute if fromlist else top, self._stand_ins)
