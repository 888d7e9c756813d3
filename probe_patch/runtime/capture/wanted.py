"""What of a run is recorded: config.json's level, risk_level and data_mode, as the capture understands them."""

from dataclasses import dataclass

from probe_patch.config import Config
from probe_patch.runtime.capture.functions.risk import RiskLevel


@dataclass(frozen=True)
class Wanted:
    """What is recorded.

    Attributes:
        modules: calls of the model's sub-modules (levels L0 and mix).
        functions: calls of torch's functions that matter at this risk level (levels L1 and mix); None for none.
        forward: what goes into and comes out of calls.
        backward: the gradients of these, and of parameters.
    """

    modules: bool = True
    functions: RiskLevel | None = None
    forward: bool = True
    backward: bool = False

    def directions(self) -> list[str]:
        """``forward``, ``backward``, as meta.json's ``records``."""
        return [name for name, wanted in (("forward", self.forward), ("backward", self.backward)) if wanted]

    @classmethod
    def by(cls, config: Config) -> "Wanted":
        modes = config.statistics.data_mode
        everything = not modes or "all" in modes or not {"forward", "backward"} & set(modes)
        return cls(
            modules=config.level in ("L0", "mix"),
            functions=config.risk_level if config.level in ("L1", "mix") else None,
            forward=everything or "forward" in modes,
            backward=everything or "backward" in modes,
        )
