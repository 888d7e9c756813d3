"""Stands in for packages that SGLang imports and a run on a CPU never uses, so that its modules load without them.

Runs when an interpreter with this folder on its path starts, and so in every process of a server. Whatever is imported
from such a package exists and does nothing: a capitalised name is an empty class, a decorator hands back what it
decorates, anything else is falsy. What really runs may not depend on them.
"""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

ABSENT_PACKAGES = ("IPython", "sgl_kernel", "soundfile", "torchvision", "triton")
# SGLang asks Triton's driver what device there is, and takes a failure for "a CPU".
ABSENT_NAMES = frozenset({"triton.runtime.driver"})


class Nothing:
    """A name of a package that is not there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if len(arguments) == 1 and not options and callable(arguments[0]) and not isinstance(arguments[0], Nothing):
            return arguments[0]
        return Nothing(f"{self.name}()")

    def __getattr__(self, name: str) -> Any:
        return _nothing_in(self.name, name)

    def __getitem__(self, key: object) -> "Nothing":
        return Nothing(f"{self.name}[{key!r}]")

    def __iter__(self) -> Iterator[object]:
        return iter(())

    def __bool__(self) -> bool:
        return False


class HasEveryName(type):
    """Of a class: its members exist and do nothing."""

    def __getattr__(cls, name: str) -> Any:
        return _nothing_in(cls.__name__, name)


class NothingType(metaclass=HasEveryName):
    """What a class of a package that is not there derives from: made of anything, and nothing is one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass


class EmptyPackage(types.ModuleType):
    """A package in which every name is ``Nothing``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__version__ = "99.0"

    def __getattr__(self, name: str) -> Any:
        return _nothing_in(self.__name__, name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds any module of ``packages``; placed last, so that a package that is installed wins."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = frozenset(packages)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] in self.packages:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return EmptyPackage(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _nothing_in(owner: str, name: str) -> Any:
    if f"{owner}.{name}" in ABSENT_NAMES or (name.startswith("__") and name.endswith("__")):
        raise AttributeError(f"{owner} has no {name}")
    return HasEveryName(name, (NothingType,), {}) if name[0].isupper() else Nothing(f"{owner}.{name}")


sys.meta_path.append(Finder(ABSENT_PACKAGES))
