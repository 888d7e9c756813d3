#: Behind the gate. Off, every decorated function stays the object it is.
_probe_patch = _ProbePatch(config=__CONFIG__, debugger=__DEBUGGER__) if _ProbePatch else None


def _probe_patch_init(init):
    return _probe_patch.init(init) if _probe_patch else init


def _probe_patch_forward(forward):
    return _probe_patch.forward(forward) if _probe_patch else forward
