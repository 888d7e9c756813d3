#: Before the statement of a phase.
if _probe_patch: _probe_patch.start(self, __PHASE__)
