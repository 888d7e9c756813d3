"""Example trees of SGLang, patched by the real patcher and dumped by the real runtime."""
