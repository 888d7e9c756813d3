"""Processes that share a dump path, whose ranks, gpu ids, host names and even pids repeat: no two write one folder."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.sglang.jobs import dumping, patched_sglang
from tests.needs import needs

ACTIONS = [{"do": "generate", "prompts": [[1, 2, 3]], "new_tokens": 2}, {"do": "health"}]
STEPS = 2
IN_A_PID_NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")


@dataclass(frozen=True)
class Member:
    """One process. Its model's name tells which one wrote a dump, since nothing else need be unique."""

    name: str
    place: Mapping[str, object] = field(default_factory=dict)
    server_args: Mapping[str, object] = field(default_factory=dict)
    host: str | None = None
    lock_errno: int | None = None
    own_pids: bool = False


Start = Callable[[Sequence[Member]], list["subprocess.Popen[str]"]]


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("trees")
    return cache(lambda era: patched_sglang(era, folder / era))


@pytest.fixture
def dump_path(tmp_path: Path) -> Path:
    return tmp_path / "dump"


@pytest.fixture
def start(trees: Callable[[str], Path], dump_path: Path, era: str) -> Iterator[Start]:
    """Starts members together and returns when all have served; they live on until the test ends."""
    running: list[subprocess.Popen[str]] = []

    def start(members: Sequence[Member]) -> list["subprocess.Popen[str]"]:
        env = {**os.environ, **dumping(dump_path, {"modes": ["all"]}), "OMP_NUM_THREADS": "1"}
        started = [_popen(trees(era), member, env) for member in members]
        running.extend(started)
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "served\n"
        return started

    yield start
    for process in running:
        process.communicate(timeout=60)


def _popen(tree: Path, member: Member, env: Mapping[str, str]) -> "subprocess.Popen[str]":
    plan = {
        "actions": ACTIONS,
        "server_args": {"model_path": member.name, **member.server_args},
        "workers": [dict(member.place)],
    }
    job = {"tree": str(tree), "plan": plan, "host": member.host, "lock_errno": member.lock_errno}
    command = [sys.executable, str(Path(__file__).with_name("rank_process.py")), json.dumps(job)]
    if member.own_pids:
        command = [*IN_A_PID_NAMESPACE, *command]
    return subprocess.Popen(command, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def owners(dump_path: Path, folder: str = "rollout") -> dict[int, list[str]]:
    """By rank, who wrote each of its steps."""
    found: dict[int, list[str]] = {}
    for meta in metas(dump_path, folder):
        found.setdefault(meta["rank"], []).append(meta["forward"]["model_path"])
    return found


def metas(dump_path: Path, folder: str = "rollout") -> list[dict[str, Any]]:
    paths = sorted((dump_path / folder).glob("step*/rank*/meta.json"))
    found: list[dict[str, Any]] = [json.loads(path.read_bytes()) for path in paths]
    assert [path.parent.name for path in paths] == [f"rank{meta['rank']}" for meta in found]
    return found


def assert_each_has_its_own(dump_path: Path, members: Sequence[Member]) -> None:
    """As many ranks as processes, each written by one of them from its first step to its last, nothing moved aside."""
    by_rank = owners(dump_path)
    assert sorted(by_rank.values()) == sorted([member.name] * STEPS for member in members)
    assert not (dump_path / "rollout.replaced").exists()


def tensor_parallel(engine: str, size: int, **server_args: object) -> list[Member]:
    """An engine of one node: its ranks and gpu ids count from 0, as in every other engine."""
    return [
        Member(f"{engine}{rank}", {"tp_rank": rank, "tp_size": size, "gpu_id": rank}, {"tp_size": size, **server_args})
        for rank in range(size)
    ]


def on_host(members: Sequence[Member], host: str) -> list[Member]:
    return [Member(member.name, member.place, member.server_args, host) for member in members]


TWO_ENGINES = [*tensor_parallel("a", 2, port=30000), *tensor_parallel("b", 2, port=30001)]
SETUPS = {
    "the same process four times": [Member(f"same{number}") for number in range(4)],
    "two engines": TWO_ENGINES,
    "two nodes": [*on_host(tensor_parallel("a", 2), "node-0"), *on_host(tensor_parallel("b", 2), "node-1")],
    "two nodes of one name": on_host(TWO_ENGINES, "localhost"),
    "data-parallel replicas": [
        Member(f"dp{rank}", {"dp_rank": rank, "gpu_id": rank}, {"dp_size": 2}) for rank in (0, 1)
    ],
    "pipeline and tensor parallel": [
        Member(f"pp{pp}tp{tp}", {"pp_rank": pp, "pp_size": 2, "tp_rank": tp, "tp_size": 2, "gpu_id": 2 * pp + tp})
        for pp in (0, 1)
        for tp in (0, 1)
    ],
}


@pytest.mark.parametrize(
    ("era", "setup"),
    [
        *(("F", setup) for setup in SETUPS),
        ("A", "two engines"),
        ("D", "pipeline and tensor parallel"),
        # These know nothing of data-parallel ranks: all replicas are alike.
        ("A", "data-parallel replicas"),
        ("E", "data-parallel replicas"),
    ],
)
def test_no_two_processes_write_one_folder(start: Start, dump_path: Path, era: str, setup: str) -> None:
    start(SETUPS[setup])
    assert_each_has_its_own(dump_path, SETUPS[setup])


@pytest.mark.parametrize("era", ["F"])
def test_the_ranks_of_one_engine_are_kept_where_nobody_else_has_them(start: Start, dump_path: Path, era: str) -> None:
    start(SETUPS["pipeline and tensor parallel"])
    named = {rank: writers[0] for rank, writers in owners(dump_path).items()}
    assert named == {0: "pp0tp0", 1: "pp0tp1", 2: "pp1tp0", 3: "pp1tp1"}


@pytest.mark.parametrize("era", ["F"])
def test_engines_that_start_one_after_the_other_follow_each_other(start: Start, dump_path: Path, era: str) -> None:
    for engine in (TWO_ENGINES[:2], TWO_ENGINES[2:]):
        start(engine)
    assert {rank: writers[0] for rank, writers in owners(dump_path).items()} == {0: "a0", 1: "a1", 2: "b0", 3: "b1"}


@pytest.mark.parametrize("era", ["F"])
def test_a_dump_says_whose_it_is(start: Start, dump_path: Path, era: str) -> None:
    """Two engines of two nodes, four processes each, of which one is started."""
    place = {
        "gpu_id": 3,
        "tp_rank": 1,
        "tp_size": 2,
        "pp_rank": 1,
        "pp_size": 2,
        "moe_ep_rank": 1,
        "moe_ep_size": 2,
        "dp_rank": 1,
        "nccl_port": 28123,
    }
    server_args = {"tp_size": 2, "pp_size": 2, "dp_size": 2, "ep_size": 2, "nnodes": 2, "node_rank": 1, "port": 31000}
    start([Member("mine", place, server_args, host="node-7")])
    for meta in metas(dump_path):
        assert (meta["host"], meta["rank"]) == ("node-7", 7)
        assert meta["parallel"] == {name: {"rank": 1, "size": 2} for name in ("tp", "pp", "dp", "ep")}
        told = meta["engine"]
        assert (told["node_rank"], told["nodes"], told["gpu_id"]) == (1, 2, 3)
        assert (told["port"], told["dist_port"]) == (31000, 28123)


@pytest.mark.parametrize("era", ["F"])
def test_repeating_pids_make_no_difference(start: Start, dump_path: Path, era: str) -> None:
    """As in containers: the processes have the same pid, host name, rank and gpu."""
    probe = [*IN_A_PID_NAMESPACE, "true"]
    possible = shutil.which("unshare") and not subprocess.run(probe, capture_output=True, check=False).returncode
    needs(bool(possible), "this machine gives out no pid namespaces (unshare --user --pid)")
    members = [Member(f"container{number}", host="localhost", own_pids=True) for number in range(3)]
    start(members)
    assert len({meta["pid"] for meta in metas(dump_path)}) == 1
    assert_each_has_its_own(dump_path, members)


@pytest.mark.parametrize("era", ["F"])
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS], ids=errno.errorcode.get)
def test_without_locks_there_are_no_collisions_either(start: Start, dump_path: Path, era: str, number: int) -> None:
    members = [Member(f"unlocked{index}", host=f"node-{index}", lock_errno=number) for index in range(3)]
    start(members)
    assert_each_has_its_own(dump_path, members)


@pytest.mark.parametrize("era", ["F"])
def test_where_locks_end_at_the_node_the_earlier_process_makes_way_and_nothing_is_lost(
    start: Start, dump_path: Path, era: str
) -> None:
    """Some network file systems give every node every lock: the newcomer cannot tell a live process from a rerun."""
    (first,) = start([Member("first", host="node-0", lock_errno=0)])
    start([Member("second", host="node-1", lock_errno=0)])
    assert first.stdin is not None and first.stdout is not None
    first.stdin.write("again\n")
    first.stdin.flush()
    assert first.stdout.readline() == "served\n"
    assert owners(dump_path) == {0: ["second"] * STEPS, 1: ["first"] * STEPS}
    assert {meta["step"] for meta in metas(dump_path) if meta["rank"] == 1} == {2, 3}
    moved = (dump_path / "rollout.replaced").glob("*/meta.json")
    assert [json.loads(path.read_bytes())["forward"]["model_path"] for path in moved] == ["first"] * STEPS


@pytest.mark.parametrize("era", ["F"])
def test_a_rerun_takes_the_same_rank_and_moves_the_old_dumps_aside(start: Start, dump_path: Path, era: str) -> None:
    (first,) = start([Member("old")])
    first.communicate(timeout=60)
    start([Member("new")])
    assert owners(dump_path) == {0: ["new"] * STEPS}
    moved = sorted(path.name for path in (dump_path / "rollout.replaced").iterdir())
    assert moved == ["step0-rank0-1", "step1-rank0-1"]
    kept = json.loads((dump_path / "rollout.replaced" / "step1-rank0-1" / "meta.json").read_bytes())
    assert kept["forward"]["model_path"] == "old"


@pytest.mark.parametrize("era", ["F"])
def test_a_killed_process_leaves_its_rank_to_the_next(start: Start, dump_path: Path, era: str) -> None:
    (first,) = start([Member("killed")])
    first.kill()
    first.wait(timeout=60)
    start([Member("next")])
    assert owners(dump_path) == {0: ["next"] * STEPS}


@pytest.mark.parametrize("era", ["F"])
def test_a_living_process_keeps_its_dumps_when_others_come(start: Start, dump_path: Path, era: str) -> None:
    members = [Member(name) for name in ("first", "second", "third")]
    for member in members:
        start([member])
    assert owners(dump_path) == {rank: [member.name] * STEPS for rank, member in enumerate(members)}
