"""One rank: trains every model unrecorded, observed, and recorded at each level."""

import logging
from typing import Any

from tests.frameworks.leftovers import Before
from tests.frameworks.megatron import on_cpu
from tests.frameworks.megatron.gpt import lay_out_groups
from tests.frameworks.megatron.shapes import SHAPES, Shape
from tests.frameworks.megatron.training import train
from tests.frameworks.ranks import Job, Result, main
from tests.frameworks.recording import LEVELS, Observed, Recorded


def run(job: Job) -> Result:
    on_cpu.stand_in()
    return {name: _run_shape(job, name, shape) for name, shape in SHAPES.items()}


def _run_shape(job: Job, name: str, shape: Shape) -> dict[str, Any]:
    lay_out_groups(shape)
    observed = Observed()
    runs = {"plain": train(shape), "observed": train(shape, around=observed)}
    # Only now, as Megatron replaces some of torch's methods itself.
    before = Before()
    recordings = {level: Recorded(job, name, level, before) for level in LEVELS}
    runs |= {level: train(shape, around=recorded) for level, recorded in recordings.items()}
    return {
        "runs": runs,
        "during": {level: recorded.during for level, recorded in recordings.items()},
        "left": {level: recorded.left for level, recorded in recordings.items()},
        "calls": observed.seen.calls,
        "gradients": observed.seen.gradients,
    }


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    main(run)
