"""Named stretches of a program, each recorded into a folder of its own."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from probe_patch.errors import WrongUsage
from probe_patch.runtime.capture.names import Model
from probe_patch.runtime.occasion import ByHand
from probe_patch.runtime.ranks import identify
from probe_patch.runtime.service import Service, Stretch

_ALLOWED: Final = re.compile(r"\w[\w.-]{0,59}")
# Readers take the first for a step, and the second holds what earlier runs left of a phase.
_TAKEN: Final = re.compile(r"step\d*|.*\.replaced")


@contextmanager
def recorded_phase(service: Service, name: str, model: Model | None) -> Iterator[None]:
    """Record the block, unless it is inside a phase of this name already, which then simply goes on.

    What is being recorded around it is stopped meanwhile, and goes on behind it. A block whose phase cannot be begun
    runs all the same.
    """
    around = service.running
    stretch = _stretch(service, name, model)
    if stretch is None or (around is not None and around.folder == stretch.folder):
        yield
        return
    service.stop(None)
    _start(service, stretch)
    try:
        yield
    except BaseException as error:
        service.stop(error)
        raise
    else:
        service.stop(None)
    finally:
        if around is not None:
            _start(service, around)


def checked_phase_name(name: object) -> str:
    """The name itself: it becomes a folder in the dump path, beside other phases'.

    Raises:
        WrongUsage: it cannot.
    """
    if not isinstance(name, str) or _ALLOWED.fullmatch(name) is None or _TAKEN.fullmatch(name) is not None:
        raise WrongUsage(
            f"{name!r} is no name of a phase; write up to 60 letters, digits, _, - and ., but not step0 or the like, "
            "and nothing that ends in .replaced"
        )
    return name


def _stretch(service: Service, name: str, model: Model | None) -> Stretch | None:
    try:
        service.look_again()
        folder = service.config.folder() / checked_phase_name(name)
        return Stretch(model, identify(None), folder, ByHand(name))
    except Exception as error:
        service.note("beginning a phase", error)
        return None


def _start(service: Service, stretch: Stretch) -> None:
    service.start(stretch.model, stretch.identity, stretch.folder, stretch.occasion, stretch.tokens)
