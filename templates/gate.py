#: The head of every prelude, behind the file's docstring and __future__ lines. Off, it imports nothing of ours.
# DUMP_ON=1 makes this process write its dump; without it nothing below runs. Undo with: probe-patch revert
import os as _probe_patch_os

_ProbePatch = None
_probe_patch_dump_on = _probe_patch_os.environ.get("DUMP_ON", "").strip().lower()
if _probe_patch_dump_on in ("1", "true", "yes", "on"):
    try:
        from probe_patch.runtime.__RUNTIME__ import Probe as _ProbePatch
    except ImportError as _probe_patch_error:
        raise ImportError(
            f"DUMP_ON is on, but probe-patch cannot be imported here ({_probe_patch_error}): "
            "install it in this environment on every node, or unset DUMP_ON"
        ) from _probe_patch_error
elif _probe_patch_dump_on not in ("", "0", "false", "no", "off"):
    raise ValueError(
        f"DUMP_ON is {_probe_patch_os.environ['DUMP_ON']!r}: set it to 1, true, yes or on to dump, "
        "or to 0, false, no or off not to"
    )
