"""A child per job: what one has imported, another does not meet; what all need is imported once, by their parent."""

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any


def in_a_child(run: Callable[[dict[str, Any]], None], job: dict[str, Any]) -> None:
    """Returns when it is done.

    Raises:
        SystemExit: it failed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run(job)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"a job failed: {job}")
