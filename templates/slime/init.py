#: The first statement of init: it may return early, and its super().init has not run yet.
if _probe_patch: self.debugger = _probe_patch.debugger(role)
