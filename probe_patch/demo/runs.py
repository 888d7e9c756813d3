"""One run of an example tree's ``train.py``, as a process of its own, and what it reported."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from pydantic import BaseModel, ConfigDict

from probe_patch.errors import SystemFailed

_GRACE_S: Final = 15.0


class RankReport(BaseModel):
    """What one rank computed in one rollout. ``losses`` are those of its micro-batches, in order."""

    model_config = ConfigDict(frozen=True)

    rank: int
    phases: tuple[str, ...]
    losses: tuple[float, ...]
    grad_norms: tuple[float, ...]
    log_prob_means: dict[str, float]
    weights_sha256: str
    probe_patch_loaded: bool
    train_function_is_original: bool

    def numbers(self) -> tuple[object, ...]:
        """Everything training computed, to be compared bit for bit."""
        return self.losses, self.grad_norms, self.log_prob_means, self.weights_sha256


class Rollout(BaseModel):
    model_config = ConfigDict(frozen=True)

    rollout_id: int
    ranks: tuple[RankReport, ...]


class RunResult(BaseModel):
    """The result.json of a run."""

    model_config = ConfigDict(frozen=True)

    rollouts: tuple[Rollout, ...]

    def reports(self) -> tuple[RankReport, ...]:
        return tuple(report for rollout in self.rollouts for report in rollout.ranks)

    def numbers(self) -> tuple[tuple[object, ...], ...]:
        return tuple(report.numbers() for report in self.reports())


def run(tree: Path, result: Path, job_env: Mapping[str, str], rollouts: int) -> Iterator[str]:
    """Train ``rollouts`` rollouts under Ray, with ``job_env`` as the job-level runtime env; yields a word per stage.

    Python writes no bytecode into the tree, so that its hash speaks of sources only.

    Raises:
        SystemFailed: the run ended badly; the sentence holds the end of what it said.
    """
    runtime_env = json.dumps({"env_vars": {"PYTHONDONTWRITEBYTECODE": "1", **job_env}})
    command = [sys.executable, "train.py", "--num-rollout", str(rollouts), "--result", str(result)]
    environment = {name: value for name, value in os.environ.items() if name != "DUMP_ON"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    log = result.with_suffix(".log")
    command += ["--runtime-env", runtime_env]
    with log.open("wb") as errors, _running(command, tree, environment, errors) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield _stage(line)
    if process.returncode:
        raise SystemFailed(f"the run in {tree} ended with exit code {process.returncode}: {_end_of(log)}")


@contextlib.contextmanager
def _running(
    command: Sequence[str], tree: Path, environment: Mapping[str, str], errors: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """The process, which is over when the block is: it ended by itself, or an exception ends it, Ray and all.

    It has a session of its own, so that Ctrl-C in a terminal interrupts us alone, and its Ray is shut down in order.
    """
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
    ) as process:
        try:
            yield process
        except BaseException:
            _end(process)
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.send_signal(signal.SIGINT)
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def read_result(result: Path) -> RunResult:
    return RunResult.model_validate_json(result.read_bytes())


def _stage(line: bytes) -> str:
    try:
        event = json.loads(line)
        name = str(event["stage"])
        return f"rollout {event['rollout_id']}" if "rollout_id" in event else name
    except (ValueError, KeyError, TypeError):
        return ""


def _end_of(log: Path) -> str:
    with log.open(errors="replace") as lines:
        return " / ".join(line.strip() for line in deque(lines, maxlen=3)) or "it said nothing"
