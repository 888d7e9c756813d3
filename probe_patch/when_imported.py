"""Do something with a module as soon as it has been imported, without importing it earlier than the program does."""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def when_imported(name: str, then: Callable[[ModuleType], None]) -> None:
    """Call ``then`` with the module ``name``: now if it is loaded, and after every (re-)import of it from here on.

    What ``then`` raises, the import raises.
    """
    sys.meta_path.insert(0, _Watch(name, then))
    module = sys.modules.get(name)
    if module is not None:
        then(module)


class _Watch(MetaPathFinder):
    """Finds its one module where all the others find it."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        # Only the finders behind this one, so that two watches of one module chain instead of asking each other.
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            # Python 3.10 and 3.11 also take finders of the old kind, which have none.
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find_spec(fullname, path, target) if find_spec else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Announcing(spec.loader, self._then)
                return spec
        return None


class _Announcing(Loader):
    """A module's own loader in everything, but that it tells when the module has run."""

    def __init__(self, loader: Loader, then: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._then = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module keeps its own loader: its source and its resources are asked of it for as long as it lives.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then(module)
