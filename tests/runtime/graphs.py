"""Looks at graphs of autograd."""

from typing import Any

from torch import Tensor


def nodes_behind(tensor: Tensor) -> list[Any]:
    """Each once, those nearer to the tensor first."""
    nodes: list[Any] = [tensor.grad_fn]
    for node in nodes:
        nodes += [behind for behind, _ in node.next_functions if behind is not None and behind not in nodes]
    return nodes
