"""Runs in ``.venv-sglang``, as a process of its own: drives a real ``ModelRunner`` and reports what came out."""
