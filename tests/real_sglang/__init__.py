"""A real SGLang on the CPU, in an environment of its own: ``make venv-sglang``."""
