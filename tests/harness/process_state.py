"""Makes the changes to the process that a run needs, and takes every one of them back."""

import contextlib
import io
import logging
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from unittest import mock

PROBE_MODULE = "probe_patch.runtime.slime"


@contextlib.contextmanager
def borrowed_process(dump_on: str | None, probe: object) -> Iterator[None]:
    """``DUMP_ON`` is ``dump_on``, ``from probe_patch.runtime.slime import Probe`` gives ``probe``, nothing is printed.

    Afterwards the environment, ``sys.modules``, the streams and Megatron's log level (which the actor sets when it is
    imported) are what they were.
    """
    before = sys.modules.get(PROBE_MODULE)
    megatron = logging.getLogger("megatron")
    level = megatron.level
    with (
        mock.patch.dict(os.environ),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        os.environ.pop("DUMP_ON", None)
        if dump_on is not None:
            os.environ["DUMP_ON"] = dump_on
        stand_in = ModuleType(PROBE_MODULE)
        vars(stand_in)["Probe"] = probe
        if probe is not None:
            sys.modules[PROBE_MODULE] = stand_in
        try:
            yield
        finally:
            megatron.setLevel(level)
            if probe is not None:
                if before is None:
                    del sys.modules[PROBE_MODULE]
                else:
                    sys.modules[PROBE_MODULE] = before
