"""One package per thing that gets patched: where it is, its anchors, what it refuses and what its user should know."""
