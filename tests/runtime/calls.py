"""For tests that record values themselves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from probe_patch.runtime.capture.forwards import BEFORE_ANY_PASS, Call
from probe_patch.runtime.capture.names import FunctionName
from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.stats.apart import ApartFromTheRun

CALL: Final = Call(FunctionName("Torch.x"), 0, None, BEFORE_ANY_PASS, None)


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """As a hook does it."""
    with ApartFromTheRun():
        yield
        recorder.launch()
