"""``PrecisionDebugger``, a drop-in for msProbe's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from probe_patch.config import Overrides
from probe_patch.runtime.capture.names import Model
from probe_patch.runtime.occasion import ByHand
from probe_patch.runtime.ranks import identify
from probe_patch.runtime.service import Service
from probe_patch.runtime.settings import read_settings

_BY_HAND: Final = ByHand()


class PrecisionDebugger:
    """Records the statistics of every sub-module's inputs, outputs and parameters between ``start`` and ``stop``.

    Unlike msProbe's, it is no singleton: each object has its own settings and counters. What it writes goes to
    ``{dump_path}/step{N}/rank{R}``; a dump path assigned to ``config`` or ``service.config`` counts from the next
    ``start``, which then counts its entries from 0.

    Args:
        config_path: a config.json; without one, step 0 is recorded into ``probe_patch_dump`` in the working directory.
        task, dump_path, level, step: replace the config's values when given.

    Raises:
        ConfigError: the config cannot be read or served, or its dump path cannot be written.
    """

    def __init__(
        self,
        config_path: str | Path | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        step: Sequence[int | str] | None = None,
    ) -> None:
        self.config = read_settings(config_path, Overrides(task, dump_path, level, step))
        self.service = Service(self.config)

    def start(
        self,
        model: Model | None = None,
        token_range: Sequence[int] | None = None,
        rank_id: int | None = None,
        scheduled_tokens: object = None,
    ) -> None:
        """Begin to record ``model``, or a list of its chunks. A second start changes nothing.

        Args:
            token_range: not served yet; noted once in the log.
            rank_id: this process's rank, when it is not torch.distributed's.
            scheduled_tokens: not served yet; noted once in the log.
        """
        if token_range is not None or scheduled_tokens is not None:
            self.service.note("choosing tokens", "token_range and scheduled_tokens are not served yet")
        try:
            folder, identity = self.config.folder(), identify(rank_id)
        except Exception as error:
            self.service.note("starting", error)
            return
        self.service.start(model, identity, folder, _BY_HAND)

    def stop(self) -> None:
        """Stop recording and write the files. Without a start, nothing."""
        self.service.stop(None)

    def step(self) -> None:
        """Go on to the next step."""
        self.service.step()
