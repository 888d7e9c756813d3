"""How many forwards of a process counted, how many did not, and what to say when none did."""

from collections import Counter
from typing import Final

from probe_patch.runtime.sglang.selection import FEW_TOKENS, Selection

PATIENCE: Final = 10
"""Forwards after which a process that has recorded nothing says so: most of them are ended by a signal, and an exit
handler would never run."""


class Tally:
    """Counts of one model runner's forwards."""

    def __init__(self) -> None:
        self.counted = 0
        self.recorded = 0
        self.skipped: Counter[str] = Counter()

    def why_nothing(self, selection: Selection) -> str:
        """The likely cause, and what to change, where nothing was recorded."""
        if self.counted:
            return f"{self.counted} forwards have counted so far, and step in config.json selects none of them"
        few = self.skipped[FEW_TOKENS]
        if few:
            return (
                f"{few} extend forwards had fewer tokens than min_tokens, which is {selection.min_tokens}: a health "
                "probe has one, and of a prompt that is in the radix cache only the last runs; start the server with "
                "the flags that probe-patch launch-args prints, or lower rollout.min_tokens"
            )
        if not self.skipped:
            return "no forward ran: no request reached this process, or a graph replay took its place"
        modes = ", ".join(f"{count} {mode}" for mode, count in self.skipped.most_common())
        return (
            f"the forwards that ran were {modes}, and rollout.modes is {sorted(selection.modes)}; a decode server of a "
            "disaggregated setup runs no extend, and an idle data-parallel rank runs nothing"
        )
