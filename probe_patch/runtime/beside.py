"""What stands beside a dump path: readers take everything inside it for a step.

``.{name}.locks`` says who writes which rank, ``{name}.replaced`` keeps what earlier runs left.
"""

import os
from pathlib import Path


def locks_folder(dump_path: Path) -> Path:
    return _beside(dump_path, f".{dump_path.name}.locks")


def replaced_folder(dump_path: Path) -> Path:
    return _beside(dump_path, f"{dump_path.name}.replaced")


def _beside(dump_path: Path, name: str) -> Path:
    """In the dump path itself where its parent is not ours to write."""
    parent = dump_path.parent
    writable = dump_path.name and (not parent.exists() or os.access(parent, os.W_OK | os.X_OK))
    return (parent if writable else dump_path) / name
