"""``python -m tests.real_sglang.driver REPORT FIRST SECOND SCENARIO...``

The report goes into the file REPORT, each scenario's config.json and dumps into a folder beside it; FIRST and SECOND
are checkpoints. SGLang's plugins are loaded before the rest of it, where it has any, as in its own scheduler process.
"""

import dataclasses
import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path

import torch

from tests.real_sglang.report import CONFIGS, Checkpoints, Report


def main(report: Path, checkpoints: Checkpoints, names: list[str]) -> None:
    torch.set_num_threads(1)
    if importlib.util.find_spec("sglang.srt.plugins"):
        importlib.import_module("sglang.srt.plugins").load_plugins()
    scenarios = importlib.import_module("tests.real_sglang.driver.scenarios").SCENARIOS
    outcomes = {}
    for name in names:
        _use_config(name, report.parent / name)
        outcomes[name] = scenarios[name](checkpoints)
    runner = importlib.import_module("sglang.srt.model_executor.model_runner").ModelRunner
    wrapped = hasattr(runner.forward, "__probe_patch__")
    done = Report(outcomes, wrapped, "probe_patch.runtime" in sys.modules)
    report.write_text(json.dumps(dataclasses.asdict(done)), encoding="utf-8")


def _use_config(name: str, folder: Path) -> None:
    """It is read when a runner is made."""
    folder.mkdir()
    config = folder / "config.json"
    config.write_text(json.dumps({"level": "L0", "dump_path": str(folder / "dump"), **CONFIGS[name]}), encoding="utf-8")
    os.environ["PROBE_PATCH_ROLLOUT_CONFIG"] = str(config)


if __name__ == "__main__":
    report, first, second = (Path(argument) for argument in sys.argv[1:4])
    main(report, Checkpoints(first, second), sys.argv[4:])
