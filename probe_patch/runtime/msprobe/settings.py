"""What msProbe was asked to do, as far as we act on it: ``MsprobeDebugger.config``."""

from pathlib import Path

from probe_patch.config import ConfigForMsprobe


class MsprobeSettings:
    """Where the dump goes, and which steps and ranks are in it.

    Attributes:
        is_read_again: whether msProbe reads the file again while the process runs; then only it knows the lists.
    """

    def __init__(self, config: ConfigForMsprobe) -> None:
        self.dump_path = config.dump_path
        self.level = config.level
        self.rollout = config.rollout
        self.is_read_again = config.dump_enable is not None
        # Where it can change, only msProbe knows.
        self.is_on = True
        self._steps = frozenset(() if self.is_read_again else config.step)
        self._ranks = frozenset(() if self.is_read_again else config.rank)

    def folder(self) -> Path:
        """The absolute dump path."""
        return Path(self.dump_path).absolute()

    def selects(self, step: int, rank: int | None) -> bool:
        """Whether this step of this rank is to be recorded; an empty list selects all."""
        return (not self._steps or step in self._steps) and self.selects_rank(rank)

    def selects_rank(self, rank: int | None) -> bool:
        """Whether anything of this rank is to be recorded; a list of ranks leaves out a process that has none."""
        return not self._ranks or rank in self._ranks
