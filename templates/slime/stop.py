#: Behind the statement of a phase.
if _probe_patch: _probe_patch.stop(self, __PHASE__)
