"""How a program has its training steps seen: by plain hooks, or by a debugger at one level."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from torch import nn

from probe_patch.runtime.capture.names import Model
from probe_patch.runtime.debugger import PrecisionDebugger
from tests.frameworks.leftovers import Before
from tests.frameworks.observer import Observer
from tests.frameworks.ranks import Job

STEPS: Final = 5
OBSERVED_STEP: Final = 1
"""The one that plain hooks see: the weights have moved by then."""

LEVELS: Final = ("L0", "L1", "mix")

Around: TypeAlias = Callable[[Any], AbstractContextManager[object]]
"""Given a model, or a list of chunks, and entered for the passes of one step."""


def dump_path_of(scratch: Path, name: str, level: str) -> Path:
    """Where a model's recording is."""
    return scratch / "dumps" / level / name


class Observed:
    """Observes one of the steps."""

    def __init__(self) -> None:
        self.seen = Observer()
        self._step = 0

    @contextmanager
    def __call__(self, model: Model) -> Iterator[None]:
        if self._step == OBSERVED_STEP:
            with self.seen.watch(model):
                yield
        else:
            yield
        self._step += 1


class Recorded:
    """Records every step, in every data mode.

    Attributes:
        during: what each step's recording had put into the process, in words.
        left: what was left of it after the stop.
    """

    def __init__(self, job: Job, name: str, level: str, before: Before) -> None:
        config = job.folder / f"{level} {name} {job.rank}.json"
        dump_path = str(dump_path_of(job.folder, name, level))
        keys = {"level": level, "dump_path": dump_path, "step": [], "statistics": {"data_mode": ["all"]}}
        config.write_text(json.dumps(keys))
        self.debugger = PrecisionDebugger(config)
        self._before = before
        self.during: list[list[str]] = []
        self.left: list[list[str]] = []

    @contextmanager
    def __call__(self, model: Model) -> Iterator[None]:
        chunks: Sequence[nn.Module] = [model] if isinstance(model, nn.Module) else model
        self.debugger.start(model)
        self.during.append(self._before.left(chunks))
        yield
        self.debugger.stop()
        self.debugger.step()
        self.left.append(self._before.left(chunks))
