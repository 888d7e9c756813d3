"""Example trees of slime, patched by the real patcher and dumped by the real runtime."""
