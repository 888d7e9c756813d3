"""One rank: trains every model unrecorded, observed, and recorded at each level."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import nn

from probe_patch.runtime.debugger import PrecisionDebugger
from tests.frameworks.leftovers import Before
from tests.frameworks.megatron import on_cpu
from tests.frameworks.megatron.gpt import lay_out_groups
from tests.frameworks.megatron.shapes import LEVELS, OBSERVED_STEP, SHAPES, Shape, dump_path_of
from tests.frameworks.megatron.training import train
from tests.frameworks.observer import Observer
from tests.frameworks.ranks import Job, Result, main


def run(job: Job) -> Result:
    on_cpu.stand_in()
    return {name: _run_shape(job, name, shape) for name, shape in SHAPES.items()}


def _run_shape(job: Job, name: str, shape: Shape) -> dict[str, Any]:
    lay_out_groups(shape)
    observed = _Observed()
    runs = {"plain": train(shape), "observed": train(shape, around=observed)}
    # Only now, as Megatron replaces some of torch's methods itself.
    before = Before()
    recordings = {level: _Recorded(job, name, level, before) for level in LEVELS}
    runs |= {level: train(shape, around=recorded) for level, recorded in recordings.items()}
    return {
        "runs": runs,
        "during": {level: recorded.during for level, recorded in recordings.items()},
        "left": {level: recorded.left for level, recorded in recordings.items()},
        "calls": observed.seen.calls,
        "gradients": observed.seen.gradients,
    }


class _Observed:
    """Observes one of the steps, one in which the weights have moved already."""

    def __init__(self) -> None:
        self.seen = Observer()
        self._step = 0

    @contextmanager
    def __call__(self, chunks: Sequence[nn.Module]) -> Iterator[None]:
        if self._step == OBSERVED_STEP:
            with self.seen.watch(chunks):
                yield
        else:
            yield
        self._step += 1


class _Recorded:
    """Records every step into a folder."""

    def __init__(self, job: Job, name: str, level: str, before: Before) -> None:
        dump_path = dump_path_of(job.folder, name, level)
        config = job.folder / f"{level} {name} {job.rank}.json"
        keys = {"level": level, "dump_path": str(dump_path), "step": [], "statistics": {"data_mode": ["all"]}}
        config.write_text(json.dumps(keys))
        self._debugger = PrecisionDebugger(config)
        self._before = before
        self.during: list[list[str]] = []
        self.left: list[list[str]] = []

    @contextmanager
    def __call__(self, chunks: Sequence[nn.Module]) -> Iterator[None]:
        self._debugger.start(chunks)
        self.during.append(self._before.left(chunks))
        yield
        self._debugger.stop()
        self._debugger.step()
        self.left.append(self._before.left(chunks))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    main(run)
