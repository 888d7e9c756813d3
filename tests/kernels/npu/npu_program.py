"""Trains a model for a step on the fake NPU and on the host, recorded and not, and prints what ran on the device.

python -m tests.kernels.npu.npu_program FOLDER SUMMARY_MODE
"""

import dataclasses
import json
import sys
from pathlib import Path

import torch

from tests.kernels.npu import fake_npu
from tests.runtime.configs import debugger_with
from tests.runtime.toys import Mlp

PRIVATE = "body.down.weight"


def model_on(device: str) -> Mlp:
    torch.manual_seed(0)
    model = Mlp()
    if device == "npu":
        fake_npu.move(model, lambda name: name == PRIVATE)
    return model


def values_on(device: str) -> torch.Tensor:
    values = torch.linspace(-3, 5, 12).reshape(3, 4)
    return fake_npu.NpuTensor(values) if device == "npu" else values


def main(folder: Path, summary_mode: str) -> None:
    fake_npu.install()
    found = {}
    for device in ("npu", "cpu"):
        model = model_on(device)
        with fake_npu.watch() as plain:
            model(values_on(device)).sum().backward()
        model = model_on(device)
        debugger = debugger_with(
            folder / device, level="mix", statistics={"summary_mode": summary_mode, "slice": [{"dim": 1, "end": 3}]}
        )
        debugger.start(model)
        with fake_npu.watch() as recorded:
            model(values_on(device)).sum().backward()
        with fake_npu.watch() as stopping:
            debugger.stop()
        if device == "npu":
            seen = {"plain": plain, "recorded": recorded, "stopping": stopping}
            found = {name: dataclasses.asdict(part) for name, part in seen.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
