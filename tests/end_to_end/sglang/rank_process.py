"""One process of an inference job: run the plan, say so, run it again for each line on stdin, and end with stdin.

    python rank_process.py '{"tree": …, "plan": …, "host": …, "lock_errno": …}'

``host`` replaces the host name; with ``lock_errno`` every attempt to lock a file fails with it, or succeeds without a
lock where it is 0.
"""

import fcntl
import functools
import json
import os
import socket
import sys
from importlib import import_module
from typing import Any


def main(job: dict[str, Any]) -> None:
    if job["host"] is not None:
        socket.gethostname = lambda: job["host"]
    if job["lock_errno"] is not None:
        fcntl.lockf = _lockless(job["lock_errno"])
    sys.path.insert(0, job["tree"])
    command = import_module("sglang.driver.command")
    schedulers = command.start(job["plan"])
    serve = functools.partial(command.carry_out, job["plan"], schedulers)
    serve()
    print("served", flush=True)
    for _ in sys.stdin:
        serve()
        print("served", flush=True)


def _lockless(number: int) -> Any:
    def lockf(*_: object) -> None:
        if number:
            raise OSError(number, os.strerror(number))

    return lockf


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
