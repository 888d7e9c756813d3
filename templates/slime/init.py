#: The first statement of init: it may return early, and its super().init has not run yet.
self.debugger = _probe_patch.debugger(role) if _probe_patch else None
