"""``seed_all``: the same numbers in every run, and no setting of CUDA that nobody asked for."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from probe_patch.errors import WrongUsage
from probe_patch.runtime import seed_all
from probe_patch.runtime.seeding import repeat
from tests.runtime.toys import ones

VARIABLES = ("PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG", "HCCL_DETERMINISTIC", "LCCL_DETERMINISTIC")


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts back everything that ``seed_all`` sets."""
    for name in (*VARIABLES, "CLOSE_MATMUL_K_SHIFT", "ATB_LLM_LCOC_ENABLE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name in ("deterministic", "benchmark"):
        monkeypatch.setattr(torch.backends.cudnn, name, getattr(torch.backends.cudnn, name))
    owners = (torch, torch.Tensor, random, np.random, functional)
    kept = {owner: dict(vars(owner)) for owner in owners}
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    for owner, attributes in kept.items():
        for name, value in attributes.items():
            if vars(owner).get(name) is not value:
                setattr(owner, name, value)
    for name in set(vars(torch.Tensor)) - set(kept[torch.Tensor]):
        delattr(torch.Tensor, name)
    repeat._begin = None
    torch.use_deterministic_algorithms(False)
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])


DRAWS: dict[str, Callable[[], Any]] = {
    "python": lambda: [random.random(), random.randint(0, 99), random.sample(range(50), 3)],
    "numpy": lambda: [np.random.rand(), np.random.randint(99), np.random.permutation(9).tolist()],
    "numpy's aliases": lambda: [np.random.sample(), np.random.ranf()],
    "torch": lambda: [torch.rand(2).tolist(), torch.randperm(9).tolist(), torch.randn(2).tolist()],
    "in place": lambda: [torch.empty(2).normal_().tolist(), torch.empty(2).uniform_().tolist()],
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_the_same_seed_gives_the_same_numbers(draw: Callable[[], Any]) -> None:
    drawn = []
    for seed in (1234, 7, 1234):
        seed_all(seed)
        drawn.append((draw(), draw()))
    assert drawn[0] == drawn[2] != drawn[1]
    assert drawn[0][0] != drawn[0][1]


def test_the_seed_is_1234_unless_another_is_given() -> None:
    seed_all()
    drawn = torch.rand(3)
    torch.manual_seed(1234)
    assert torch.equal(torch.rand(3), drawn)
    assert os.environ["PYTHONHASHSEED"] == "1234"


def test_unless_asked_no_setting_of_a_device_is_touched() -> None:
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = False, True
    seed_all(1)
    assert not torch.are_deterministic_algorithms_enabled()
    assert (torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark) == (False, True)
    assert [name for name in VARIABLES if name in os.environ] == ["PYTHONHASHSEED"]


def test_mode_asks_for_deterministic_algorithms_and_takes_that_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "12.4")
    torch.backends.cudnn.benchmark = True
    seed_all(1, mode=True)
    assert torch.are_deterministic_algorithms_enabled()
    assert (torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark) == (True, False)
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert "HCCL_DETERMINISTIC" not in os.environ
    seed_all(1)
    assert not torch.are_deterministic_algorithms_enabled()


def test_mode_speaks_to_an_npus_libraries_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_npu", ModuleType("torch_npu"))
    seed_all(1)
    assert "HCCL_DETERMINISTIC" not in os.environ
    seed_all(1, mode=True)
    names = ("HCCL_DETERMINISTIC", "LCCL_DETERMINISTIC", "CLOSE_MATMUL_K_SHIFT", "ATB_LLM_LCOC_ENABLE")
    assert [os.environ[name] for name in names] == ["True", "1", "1", "0"]


def test_too_late_for_cublas_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(torch.version, "cuda", "12.4")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: None)
    seed_all(1, mode=True)
    assert "came after CUDA was first used" in caplog.text


NEVER_INITIALISES = """
import torch
from probe_patch.runtime import seed_all
def refuse(*_):
    raise AssertionError("CUDA is initialised")
torch.cuda._lazy_init = torch.cuda.init = torch.cuda.is_available = torch.cuda.device_count = refuse
seed_all(3, mode=True, rm_dropout=True, is_enhanced=True)
torch.rand(2)
"""


def test_cuda_is_never_initialised() -> None:
    subprocess.run([sys.executable, "-c", NEVER_INITIALISES], check=True, timeout=120)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"seed": -1}, "seed_all: seed is -1; pass a whole number from 0 to 4294967295"),
        ({"seed": 2**32}, "seed_all: seed is 4294967296; pass a whole number from 0 to 4294967295"),
        ({"seed": True}, "seed_all: seed is True; pass a whole number from 0 to 4294967295"),
        ({"seed": "1"}, "seed_all: seed is '1'; pass a whole number from 0 to 4294967295"),
        ({"mode": 1}, "seed_all: mode is 1; pass True or False"),
        ({"rm_dropout": None}, "seed_all: rm_dropout is None; pass True or False"),
        ({"is_enhanced": "no"}, "seed_all: is_enhanced is 'no'; pass True or False"),
    ],
)
def test_what_is_no_argument_is_refused_before_anything_is_set(arguments: dict[str, Any], sentence: str) -> None:
    state = torch.get_rng_state()
    with pytest.raises(WrongUsage) as raised:
        seed_all(**arguments)
    assert str(raised.value) == sentence
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Dropout, (24,)),
        (nn.Dropout1d, (2, 3, 4)),
        (nn.Dropout2d, (2, 3, 2, 2)),
        (nn.Dropout3d, (2, 3, 2, 2, 1)),
        (nn.AlphaDropout, (24,)),
        (nn.FeatureAlphaDropout, (2, 3, 4)),
    ],
)
def test_without_dropout_everything_passes(module: Callable[[float], nn.Module], shape: tuple[int, ...]) -> None:
    x = torch.arange(1.0, 25.0).reshape(shape)
    layer = module(0.9)
    seed_all(1)
    assert not torch.equal(layer(x), x)
    for _ in range(2):
        seed_all(1, rm_dropout=True)
        assert torch.equal(layer(x), x)
    assert vars(layer)["p"] == 0.9


def test_without_dropout_a_probability_that_is_none_still_fails() -> None:
    seed_all(1, rm_dropout=True)
    with pytest.raises(ValueError, match="probability"):
        functional.dropout(ones(2), p=1.5)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_enhanced_every_draw_is_the_first(draw: Callable[[], Any]) -> None:
    seed_all(5, is_enhanced=True)
    first = draw()
    random.random(), np.random.rand(), torch.rand(3)
    assert draw() == first
    seed_all(6, is_enhanced=True)
    assert draw() == draw() != first


def test_unless_asked_no_function_is_replaced() -> None:
    before = torch.rand, random.random, np.random.rand, torch.Tensor.normal_, functional.dropout
    seed_all(1, mode=True)
    assert (torch.rand, random.random, np.random.rand, torch.Tensor.normal_, functional.dropout) == before
