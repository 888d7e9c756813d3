"""What of a run is recorded: config.json's level, risk_level and data_mode, as the capture understands them."""

from dataclasses import dataclass

from probe_patch.config import Config
from probe_patch.runtime.capture.functions.risk import RiskLevel


@dataclass(frozen=True)
class Wanted:
    """What is recorded.

    Attributes:
        modules: calls of the model's modules (levels L0 and mix).
        functions: calls of torch's functions that matter at this risk level (levels L1 and mix); None for none.
        forward: what goes into and comes out of calls.
        backward: the gradients of these, and of parameters.
        inputs: what goes in: a call's arguments, or the gradients that arrive at its outputs.
        outputs: what comes out: a call's results and a module's parameters, or the gradients it passes on.
        namespaces: of ``torch.ops``, those whose functions are recorded; None for all but torch's own.
        values: whether either is; task "structure" only asks which calls there are.
    """

    modules: bool = True
    functions: RiskLevel | None = None
    forward: bool = True
    backward: bool = False
    inputs: bool = True
    outputs: bool = True
    namespaces: frozenset[str] | None = None
    values: bool = True

    def directions(self) -> list[str]:
        """``forward``, ``backward``, as meta.json's ``records``."""
        return [name for name, wanted in (("forward", self.forward), ("backward", self.backward)) if wanted]

    @classmethod
    def by(cls, config: Config) -> "Wanted":
        """As msProbe reads data_mode: of each pair, none named means both."""
        modes = frozenset(config.task_section.data_mode) - {"all"}
        no_direction, no_side = not modes & {"forward", "backward"}, not modes & {"input", "output"}
        values = config.task != "structure"
        functions: RiskLevel = "ALL" if config.selects_by_name else config.risk_level
        return cls(
            modules=config.level in ("L0", "mix"),
            functions=functions if config.level in ("L1", "mix") else None,
            forward=no_direction or "forward" in modes,
            backward=no_direction or "backward" in modes,
            inputs=values and (no_side or "input" in modes),
            outputs=values and (no_side or "output" in modes),
            namespaces=frozenset(config.custom_op_namespaces) or None,
            values=values,
        )
