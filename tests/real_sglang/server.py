"""SGLang's own HTTP server, in a session of its own, so that whatever it starts can be told from everything else."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.processes import left_in_the_end
from tests.real_sglang.setups import PATIENCE, PYTHON

# What a CPU needs, whatever is dumped.
CPU_FLAGS = (
    *("--device", "cpu", "--dtype", "float32", "--attention-backend", "torch_native"),
    *("--sampling-backend", "pytorch", "--grammar-backend", "none", "--skip-tokenizer-init"),
    *("--disable-overlap-schedule", "--max-total-tokens", "1024", "--max-running-requests", "8"),
    *("--mem-fraction-static", "0.5", "--host", "127.0.0.1"),
)
# Requests go to this machine itself, whatever proxy the environment names.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Server:
    """One that answers."""

    process: subprocess.Popen[bytes]
    address: str
    log: Path

    def get(self, path: str) -> int:
        """The HTTP status."""
        with _DIRECT.open(f"{self.address}{path}", timeout=PATIENCE) as answer:
            return int(answer.status)

    def generate(self, prompt: Sequence[int], new_tokens: int) -> list[int]:
        """The tokens after ``prompt``, greedy."""
        asked = {
            "input_ids": list(prompt),
            "sampling_params": {"temperature": 0, "max_new_tokens": new_tokens, "ignore_eos": True},
        }
        request = urllib.request.Request(
            f"{self.address}/generate", json.dumps(asked).encode(), {"Content-Type": "application/json"}
        )
        with _DIRECT.open(request, timeout=PATIENCE) as answer:
            tokens: list[int] = json.load(answer)["output_ids"]
        return tokens

    def wait_until_healthy(self) -> None:
        self._wait_for("/health")

    def wait_until_idle(self) -> None:
        """An answer may arrive while its request still counts as running; only an idle server flushes its cache."""
        self._wait_for("/flush_cache")

    def stop(self) -> set[int]:
        """Ask it to end, as an operator does; which of its processes are still there when it has ended."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        return left_in_the_end(lambda: session_members(self.process.pid))

    def _wait_for(self, path: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self._succeeds(path):
            time.sleep(0.2)
            waiting = time.monotonic() < deadline and self.process.poll() is None
            assert waiting, f"{path} never succeeded:\n{self.log.read_text(errors='replace')}"

    def _succeeds(self, path: str) -> bool:
        try:
            return self.get(path) == 200
        except urllib.error.URLError:
            return False


@contextmanager
def serving(
    model: Path, flags: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path
) -> Iterator[Server]:
    """A healthy server on a free port of the loopback. Nothing of it is left behind."""
    port = _free_port()
    where = ("--model-path", str(model), "--port", str(port))
    program = [str(PYTHON), "-m", "sglang.launch_server", *where, *CPU_FLAGS, *flags]
    with log.open("wb") as output:
        process = subprocess.Popen(
            program, cwd=folder, env=dict(environment), stdout=output, stderr=output, start_new_session=True
        )
    server = Server(process, f"http://127.0.0.1:{port}", log)
    try:
        server.wait_until_healthy()
        yield server
    finally:
        for member in session_members(process.pid):
            _kill(member)
        process.wait(PATIENCE)


def session_members(session: int) -> set[int]:
    """The processes of a session that have not ended: by id, as ``/proc`` has them."""
    return {int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if _is_member(path, session)}


def _is_member(stat: Path, session: int) -> bool:
    try:
        # The name before these fields is in brackets and may hold anything.
        fields = stat.read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    state, of_session = fields[0], int(fields[3])
    return of_session == session and state not in "ZX"


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _free_port() -> int:
    """Low enough for the ports that releases derive from it by adding 10000."""
    while True:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
        if port < 50_000:
            return port
