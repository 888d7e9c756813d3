"""One rank: trains every layout unrecorded, observed, and recorded at each level."""

from typing import Any

from torch import distributed as dist

from tests.frameworks.leftovers import Before
from tests.frameworks.ranks import Job, Result, main
from tests.frameworks.recording import LEVELS, Observed, Recorded
from tests.frameworks.sharded.layouts import LAYOUTS
from tests.frameworks.sharded.training import collectives, train


def run(job: Job) -> Result:
    begun = collectives()
    dist.barrier()
    return {"a barrier": collectives() - begun} | {layout: _run_layout(job, layout) for layout in LAYOUTS}


def _run_layout(job: Job, layout: str) -> dict[str, Any]:
    observed = Observed()
    runs = {"plain": train(layout), "observed": train(layout, observed)}
    before = Before()
    recordings = {level: Recorded(job, layout, level, before) for level in LEVELS}
    runs |= {level: train(layout, recorded) for level, recorded in recordings.items()}
    return {
        "runs": runs,
        "left": {level: recorded.left for level, recorded in recordings.items()},
        "calls": observed.seen.calls,
        "gradients": observed.seen.gradients,
    }


if __name__ == "__main__":
    main(run)
