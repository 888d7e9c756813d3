"""The plain Python that stands in for what is compiled from a source of its own."""

import importlib.util
from pathlib import Path
from types import ModuleType


def plain_twin(module: ModuleType) -> ModuleType:
    """A module from its ``.py``, whatever is compiled."""
    assert module.__file__ is not None
    name = module.__name__.rpartition(".")[2]
    spec = importlib.util.spec_from_file_location(f"{name}_as_it_is", Path(module.__file__).parent / f"{name}.py")
    assert spec is not None and spec.loader is not None
    twin = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(twin)
    return twin
