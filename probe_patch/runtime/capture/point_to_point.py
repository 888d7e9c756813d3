"""Records of point-to-point operations, which ``torch.distributed.batch_isend_irecv`` takes lists of."""

import sys
from typing import Any

from probe_patch.runtime.capture.forms import Record
from probe_patch.runtime.capture.scalars import group_id


def is_point_to_point(value: object) -> bool:
    """Whether it is a ``P2POp``; false without importing anything when no one has imported it."""
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and isinstance(value, distributed.P2POp)


def point_to_point_record(operation: Any, tensor: Record) -> dict[str, Record]:
    """In the form of msProbe's dump.json; ``tensor`` is the record of the tensor sent or received into."""
    distributed = sys.modules["torch.distributed"]
    ranks = distributed.get_process_group_ranks(operation.group or distributed.group.WORLD)
    return {
        "class_type": "torch.distributed.P2POp",
        "tensor": tensor,
        "op": operation.op.__name__,
        "peer": operation.peer,
        "tag": operation.tag,
        "group_id": group_id(ranks),
    }
