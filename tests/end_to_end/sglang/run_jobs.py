"""Run many jobs on SGLang trees in one process: importing torch is most of the time.

    python run_jobs.py JOBS.json

A job is ``{"tree", "plan", "env", "result"}``. What the tree's own driver tells goes to ``result`` as ``served``, with
what the logger ``probe_patch`` said.
"""

import gc
import json
import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

OURS = ("DUMP_ON", "PROBE_PATCH_CONFIG", "PROBE_PATCH_ROLLOUT_CONFIG", "MSPROBE_CONFIG_PATH", "MSPROBE_GENERATE_CONFIG")


class Listener(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def run_job(job: dict[str, Any]) -> None:
    forget({"sglang", "probe_patch"})
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


def forget(packages: set[str]) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]
    gc.collect()


if __name__ == "__main__":
    for each in json.loads(Path(sys.argv[1]).read_text()):
        run_job(each)
