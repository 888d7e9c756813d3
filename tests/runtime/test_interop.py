"""Our dumps against msProbe's of the same programs: the same names, parents, arguments and numbers, or why not.

Run where ``make venv-msprobe`` has been.
"""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from probe_patch.runtime.capture.functions.risk import RiskLevel, is_recorded
from probe_patch.runtime.debugger import PrecisionDebugger
from tests.needs import needs
from tests.runtime import catalogue_program
from tests.runtime.catalogue_program import PROGRAMS
from tests.runtime.dumps import DumpOnDisk, read_dump

REPOSITORY = Path(__file__).parents[2]
MSPROBE_PYTHON = REPOSITORY / ".venv-msprobe" / "bin" / "python"


@dataclass(frozen=True)
class Settings:
    level: str
    risk: RiskLevel
    world_size: int = 1

    def __str__(self) -> str:
        return f"{self.level}-{self.risk}-{self.world_size}"

    def takes(self, entry: str) -> bool:
        """Whether the level and the risk level have entries of this name."""
        if entry.startswith("Module."):
            return self.level != "L1"
        prefix, _, rest = entry.partition(".")
        return self.level != "L0" and is_recorded(self.risk, prefix, rest.rsplit(".", 2)[0])


RISKS: tuple[RiskLevel, ...] = ("CORE", "FOCUS", "ALL")
ALONE = [Settings(level, risk) for level in ("L0", "L1", "mix") for risk in RISKS]
TOGETHER = Settings("mix", "ALL", world_size=2)


def forwards(*entries: str) -> frozenset[str]:
    return frozenset(f"{entry}.forward" for entry in entries)


def both(*entries: str) -> frozenset[str]:
    return forwards(*entries) | {f"{entry}.backward" for entry in entries}


def modules(direction: str, number: int, *names: str) -> frozenset[str]:
    return frozenset(f"Module.{name}.{direction}.{number}" for name in names)


NOT_WRAPPED = re.compile(r"Torch\.(zeros|zeros_like|ones|tensor|complex)\.|Tensor\.(__getitem__|view)\.")
"""Functions that are not in msProbe's list of what it wraps."""

CORE_LINEAR = re.compile(r"Functional\.linear\.")
"""In msProbe's CORE list a comma is missing between "chain_matmul" and "linear"."""


def in_place(*mlps: str) -> frozenset[str]:
    """msProbe loses the backward of an in-place module and of the one before it."""
    return modules("backward", 0, *(f"{mlp}.{module}" for mlp in mlps for module in ("0.Linear", "1.ReLU")))


def idle_dropouts(count: int) -> frozenset[str]:
    """A dropout that drops nothing hands its input on; msProbe then loses its backward."""
    return frozenset(f"Functional.dropout.{number}.backward" for number in range(count))


OURS_ONLY = {
    # msProbe does not see a function that was imported before it started.
    "toy": both("Torch.relu.0") | in_place("blocks.0.mlp", "blocks.1.mlp") | idle_dropouts(2),
    "checkpointed": in_place("block.mlp") | idle_dropouts(1),
    "data parallel": in_place("module.mlp") | idle_dropouts(1),
}

REPEATED = (
    modules("forward", 1, "block.Block", "block.norm.LayerNorm", "block.attention.Attention", "block.mlp.Sequential")
    | modules("forward", 1, *(f"block.attention.{module}" for module in ("query.Linear", "key.Linear")))
    | modules("forward", 1, "block.attention.dropout.Dropout")
    | modules("forward", 1, *(f"block.mlp.{module}" for module in ("0.Linear", "1.ReLU", "2.Linear")))
    | forwards(*(f"Functional.{name}.1" for name in ("dropout", "layer_norm", "relu", "softmax")))
    | forwards(*(f"Functional.linear.{number}" for number in range(6, 10)))
    | forwards("Tensor.__matmul__.2", "Tensor.__matmul__.3", "Tensor.__mul__.1")
    | forwards("Tensor.masked_fill.1", "Tensor.transpose.1", "Tensor.__add__.2")
)
"""msProbe counts the forward that checkpointing repeats inside the backward pass as a further one."""

THEIRS_ONLY = {
    "checkpointed": REPEATED,
    "checkpointed, reentrant": REPEATED | forwards("Tensor.__add__.3"),
}

AT_EVERY_LEVEL = forwards("probe_patch_catalogue.scaled.0", "probe_patch_catalogue.scaled.1")
"""msProbe records the operators of a namespace that config.json lists at L0 too."""

TOO_EARLY = ("Distributed.batch_isend_irecv.0.forward", "output")
"""msProbe records what a batch has received before it is waited for."""

PEER_GIVES_WRONG_PARENTS = "backward"
"""After an in-place module msProbe's stack of open backwards is one off: of backwards, no parent can be compared."""

REENTRANT = "checkpointed, reentrant"
"""Its backward runs the block anew and through that, while msProbe's backward entries are those of the second run. What
we have of it is in test_gradients.py."""


ROOTS = re.compile(
    r"Module\.(Toy|TakesAll|Checkpointed|DistributedDataParallel|Sequential|[01]\.Sequential)"
    r"\.(forward|backward|parameters_grad)\.\d+"
)
"""msProbe leaves the model itself out, so what is outermost there has the model for a parent here."""


NO_GRADIENTS = "functions inside reentrant checkpointing have no gradients here; modules have"


def is_compared(program: str, entry: str) -> bool:
    return program != REENTRANT or "backward" not in entry


def ours_only(settings: Settings, program: str, ours: Iterable[str]) -> set[str]:
    listed = {entry for entry in OURS_ONLY.get(program, ()) if settings.takes(entry)}
    unknown_to_it = {entry for entry in ours if NOT_WRAPPED.match(entry)}
    unknown_to_it |= {entry for entry in ours if ROOTS.fullmatch(entry)}
    return listed | unknown_to_it | ({entry for entry in ours if CORE_LINEAR.match(entry)} & when_core(settings, ours))


def when_core(settings: Settings, entries: Iterable[str]) -> set[str]:
    return set(entries) if settings.risk == "CORE" else set()


def theirs_only(settings: Settings, program: str) -> set[str]:
    listed = {entry for entry in THEIRS_ONLY.get(program, ()) if settings.takes(entry)}
    if program == "custom operators" and settings.level == "L0":
        listed |= AT_EVERY_LEVEL
    return listed - {entry for entry in when_core(settings, listed) if CORE_LINEAR.match(entry)}


def write_config(folder: Path, name: str, settings: Settings) -> Path:
    path = folder / f"{name}-{settings}.json"
    dump_path = str(folder / name / str(settings))
    config = {
        "task": "statistics",
        "dump_path": dump_path,
        "rank": [],
        "step": [],
        "level": settings.level,
        "risk_level": settings.risk,
        "custom_op_namespaces": ["probe_patch_catalogue"],
        "statistics": {"scope": [], "list": [], "data_mode": ["all"]},
    }
    path.write_text(json.dumps(config))
    return path


def run(python: Path | str, debugger_module: str, rendezvous: Path, world_size: int, configs: list[Path]) -> None:
    # In processes of their own, as msProbe replaces torch's functions for good and has one debugger per process.
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    program = [str(python), str(Path(catalogue_program.__file__)), debugger_module, str(rendezvous)]
    running = [
        subprocess.Popen(
            [*program, str(rank), str(world_size), *map(str, configs)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world_size)
    ]
    errors = [process.communicate(timeout=200)[1] for process in running]
    assert [process.returncode for process in running] == [0] * world_size, errors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has all our dumps in it."""
    needs(MSPROBE_PYTHON.exists(), "make venv-msprobe installs msProbe")
    folder = tmp_path_factory.mktemp("interop")
    for settings in (ALONE, [TOGETHER]):
        configs = [write_config(folder, "ours", one) for one in settings]
        world_size = settings[0].world_size
        run(sys.executable, PrecisionDebugger.__module__, folder / f"ours-{world_size}", world_size, configs)
    return folder


@pytest.fixture(scope="module", params=[*ALONE, TOGETHER], ids=str)
def settings(request: pytest.FixtureRequest, folder: Path) -> Settings:
    """Msprobe's dumps of these settings are beside ours."""
    settings: Settings = request.param
    config = write_config(folder, "theirs", settings)
    run(MSPROBE_PYTHON, "msprobe.pytorch", folder / f"theirs-{settings}", settings.world_size, [config])
    return settings


@dataclass(frozen=True)
class Dumps:
    """Of one program."""

    program: str
    ours: DumpOnDisk
    theirs: dict[str, Any]
    their_construct: dict[str, Any]


@pytest.fixture(params=PROGRAMS)
def dumps(request: pytest.FixtureRequest, folder: Path, settings: Settings) -> list[Dumps]:
    """One pair per rank."""
    place = Path(str(settings), f"step{list(PROGRAMS).index(request.param)}")
    return [
        Dumps(
            request.param,
            read_dump(folder / "ours" / place / f"rank{rank}"),
            json.loads((folder / "theirs" / place / f"rank{rank}" / "dump.json").read_text())["data"],
            json.loads((folder / "theirs" / place / f"rank{rank}" / "construct.json").read_text()),
        )
        for rank in range(settings.world_size)
    ]


def test_the_names_are_msprobes_but_for_the_differences_listed_here(dumps: list[Dumps], settings: Settings) -> None:
    for one in dumps:
        said = [problem["message"] for problem in one.ours.meta["problems"]]
        assert said == ([NO_GRADIENTS] if one.program == REENTRANT and settings.level == "mix" else [])
        ours = {entry for entry in one.ours.data if is_compared(one.program, entry)}
        theirs = {entry for entry in one.theirs if is_compared(one.program, entry)}
        assert ours - theirs == ours_only(settings, one.program, ours)
        assert theirs - ours == theirs_only(settings, one.program)


def test_the_parents_of_forwards_are_msprobes(dumps: list[Dumps], settings: Settings) -> None:
    for one in dumps:
        mine, theirs = one.ours.construct, one.their_construct
        if settings.level == "L1":
            assert mine == theirs == {}
            continue
        common = [entry for entry in mine if entry in theirs and PEER_GIVES_WRONG_PARENTS not in entry]
        assert common
        below_roots = {entry: None if ROOTS.fullmatch(mine[entry] or "") else mine[entry] for entry in common}
        assert below_roots == {entry: theirs[entry] for entry in common}


def same(ours: Any, theirs: Any) -> bool:
    """Whether two records say the same, argument by argument."""
    if isinstance(theirs, dict) and theirs.get("type") == "torch.Tensor":
        return isinstance(ours, dict) and same_tensor(ours, theirs)
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in ours)
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(ours == theirs)


EXACT = {"torch.float16": 1e-3, "torch.bfloat16": 1e-2}
"""Of these types msProbe adds up in the type itself."""


def same_tensor(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Max and Min to the bit; Mean and Norm to what adding up in another order makes of them."""
    if any(ours[key] != theirs[key] for key in ("type", "dtype", "shape", "requires_grad")):
        return False
    if ours["dtype"].startswith("torch.float8"):
        # msProbe measures none of these.
        return all(theirs[key] is None and ours[key] is not None for key in ("Max", "Min", "Mean", "Norm"))
    is_complex = ours["dtype"].startswith("torch.complex")
    for key in ("Max", "Min", "Mean", "Norm"):
        mine, other = ours[key], theirs[key]
        if other is None:
            # msProbe has neither mean nor norm of integers, and no norm of complex numbers.
            if key in ("Max", "Min") and mine is not None:
                return False
        elif key in ("Max", "Min") and not is_complex:
            if mine != other and not (math.isnan(mine) and math.isnan(other)):
                return False
        elif not close(mine, other, EXACT.get(ours["dtype"], 1e-5)):
            return False
    return True


def close(ours: float, theirs: float, tolerance: float) -> bool:
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    return math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=1e-7)


def test_arguments_results_and_parameters_are_msprobes(dumps: list[Dumps]) -> None:
    for one in dumps:
        common = [entry for entry in one.ours.data if entry in one.theirs and "backward" not in entry]
        common = [entry for entry in common if "parameters_grad" not in entry or one.program != REENTRANT]
        for entry in common:
            mine, other = one.ours.data[entry], one.theirs[entry]
            assert mine.keys() == other.keys(), entry
            different = [key for key in mine if not same(mine[key], other[key])]
            assert [key for key in different if (entry, key) != TOO_EARLY] == [], entry


def test_the_gradients_of_outputs_are_msprobes(dumps: list[Dumps]) -> None:
    """Of inputs, msProbe has those of the last autograd node of a function in that node's order, bias first in a
    linear, so that only a module's can be compared."""
    for one in dumps:
        entries = [entry for entry in one.ours.data if entry in one.theirs and "backward" in entry]
        for entry in (entry for entry in entries if is_compared(one.program, entry)):
            for key in ("input", "output") if entry.startswith("Module") else ("input",):
                mine, other = one.ours.data[entry][key], one.theirs[entry][key]
                for ours, theirs in zip(mine, other, strict=key == "input"):
                    # Of an output that the module itself goes on to use, msProbe has no gradient.
                    assert theirs is None or (ours is not None and same_tensor(ours, theirs)), (entry, key)


def test_something_is_compared(folder: Path, settings: Settings) -> None:
    counts = [
        len(json.loads((folder / who / str(settings) / "step0" / "rank0" / "dump.json").read_text())["data"])
        for who in ("ours", "theirs")
    ]
    assert min(counts) > 15
