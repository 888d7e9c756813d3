"""msProbe's own PrecisionDebugger, driven by the lines of a patch in place of ours.

Importing this package, or a module of it, never imports msProbe: a ``MsprobeDebugger`` does when it is made.
"""
