"""Statistics on the host."""

import torch

from probe_patch.runtime.stats.backends.reference import Reference


class Cpu(Reference):
    """For now, as the reference."""

    name = "cpu"


def make(device: torch.device, counts: bool) -> Cpu:
    """For the host's tensors only."""
    return Cpu(device, counts)
