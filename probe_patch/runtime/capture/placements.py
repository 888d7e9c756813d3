"""How a DTensor is spread over its mesh, in the form of msProbe's dump.json."""

from typing import Any

from torch import Tensor

from probe_patch.runtime.capture.forms import Placement, Record


def placement_of(tensor: Tensor) -> Placement:
    """The mesh as nested lists of ranks, and one object per mesh dimension."""
    mesh: Any = tensor.device_mesh  # type: ignore[attr-defined]
    placements: Any = tensor.placements  # type: ignore[attr-defined]
    return Placement(mesh.mesh.tolist(), [_placement(placement) for placement in placements])


def _placement(placement: Any) -> Record:
    if placement.is_shard():
        return {"Shard": {"dim": placement.dim}}
    if placement.is_partial():
        return {"Partial": {"reduce_op": str(placement.reduce_op)}}
    return {"Replicate": {}}
