"""One package per thing that gets patched: where it is, its anchors, what it refuses and what its user should know.

``kind`` is what the core sees of one; ``choice`` picks it; the other modules are what the packages share.
"""
