"""``seed_all``: random numbers, and on demand the order of additions, that are the same in every run."""

from probe_patch.runtime.seeding.seed import seed_all

__all__ = ["seed_all"]
