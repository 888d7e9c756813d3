"""What a debugger was asked to do: the checked config, and the dump path that callers may move."""

from pathlib import Path

from probe_patch.config import Config


class DumpSettings:
    """``debugger.config``. Assigning ``dump_path`` (a string or a path) counts from the next start."""

    def __init__(self, config: Config) -> None:
        self.dump_path: str | Path = config.dump_path
        self.task = config.task
        self.level = config.level
        self.extra_info = config.extra_info
        self._steps = frozenset(config.step)
        self._ranks = frozenset(config.rank)

    def folder(self) -> Path:
        """The absolute dump path."""
        return Path(self.dump_path).absolute()

    def selects(self, step: int, rank: int) -> bool:
        """Whether this step of this rank is to be recorded; an empty list selects all."""
        return (not self._steps or step in self._steps) and (not self._ranks or rank in self._ranks)
