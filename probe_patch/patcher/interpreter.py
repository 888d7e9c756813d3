"""What an interpreter would import, asked without importing any of it."""

import contextlib
import importlib.util
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from probe_patch.errors import WrongUsage

_FIND_PACKAGES = (
    "import importlib.util, json, sys; "
    "specs = [importlib.util.find_spec(name) for name in sys.argv[1:]]; "
    "print(); "  # an interpreter may have printed half a line before
    "print(json.dumps([p for s in specs if s and s.submodule_search_locations for p in s.submodule_search_locations]))"
)


def importable(packages: Sequence[str], python: str | None) -> list[Path]:
    """The folders of those ``packages`` that an interpreter would import.

    Args:
        packages: their names, all top level.
        python: the interpreter; None asks this one.

    Raises:
        WrongUsage: it does not answer.
    """
    if python is None:
        specs = [importlib.util.find_spec(name) for name in packages]
        return [Path(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()]
    command = [python, "-c", _FIND_PACKAGES, *packages]
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60, check=True
        )
    except subprocess.TimeoutExpired:
        raise _no_answer(python, "it did not answer within a minute") from None
    except subprocess.CalledProcessError as error:
        raise _no_answer(python, (error.stderr.strip() or str(error)).splitlines()[-1]) from None
    except OSError as error:
        raise _no_answer(python, error.strerror or str(error)) from None
    folders = _last_list(answer.stdout)
    if folders is None:
        raise _no_answer(python, "it printed no list of folders; is it a Python interpreter?")
    return [Path(folder) for folder in folders]


def _last_list(printed: str) -> list[str] | None:
    """The last line that is a list of strings: interpreters may print around it as they start and end."""
    for line in reversed(printed.splitlines()):
        with contextlib.suppress(ValueError):
            answer = json.loads(line)
            if isinstance(answer, list) and all(isinstance(item, str) for item in answer):
                return answer
    return None


def _no_answer(python: str, reason: str) -> WrongUsage:
    return WrongUsage(f"--python {python}: cannot be asked what it imports ({reason})")
