"""Run many jobs on SGLang trees: importing torch is most of the time.

    python run_jobs.py JOBS.json

A job is ``{"tree", "plan", "env", "result"}``. What the tree's own driver tells goes to ``result`` as ``served``, with
what the logger ``probe_patch`` said.
"""

import json
import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.end_to_end.children import in_a_child

OURS = ("DUMP_ON", "PROBE_PATCH_CONFIG", "PROBE_PATCH_ROLLOUT_CONFIG", "MSPROBE_CONFIG_PATH", "MSPROBE_GENERATE_CONFIG")


class Listener(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def run_job(job: dict[str, Any]) -> None:
    for name in OURS:
        os.environ.pop(name, None)
    os.environ.update(job["env"])
    listener = Listener()
    logging.getLogger("probe_patch").addHandler(listener)
    sys.path.insert(0, job["tree"])
    try:
        served = import_module("sglang.driver.command").run(job["plan"])
    finally:
        logging.getLogger("probe_patch").removeHandler(listener)
        sys.path.remove(job["tree"])
    Path(job["result"]).write_text(json.dumps({"served": served, "said": listener.said}))


if __name__ == "__main__":
    import_module("torch")
    for each in json.loads(Path(sys.argv[1]).read_text()):
        in_a_child(run_job, each)
