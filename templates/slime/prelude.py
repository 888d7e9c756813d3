#: Behind the gate. Off, every decorated function stays the object it is.
_probe_patch = _ProbePatch(phases=__PHASES__, config=__CONFIG__, debugger=__DEBUGGER__) if _ProbePatch else None


def _probe_patch_rollout(train):
    return _probe_patch.rollout(train) if _probe_patch else train
