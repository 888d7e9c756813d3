"""Run where ``make venv-triton`` has been, with ``TRITON_INTERPRET=1``; elsewhere there is nothing to collect."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["test_*.py"]
