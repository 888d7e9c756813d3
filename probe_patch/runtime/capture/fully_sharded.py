"""Whether torch's fully sharded data parallel holds a model's parameters.

Both kinds run the forward and backward passes on tensors of their own, which they gather for it, and put the reduced
gradients into ``.grad`` of the parameters in the end: no gradient passes through the parameters themselves.
"""

from typing import Final

from torch import nn

from probe_patch.runtime.capture.names import Model

NO_PARAMETER_GRADIENTS: Final = (
    "the model is fully sharded (FSDP), and gradients do not pass through its parameters; so parameters_grad entries "
    "are missing, and everything else is there"
)

# By name, as the newer one moved in torch 2.6, and importing either for a model that has neither would be for nothing.
_WRAPPERS: Final = frozenset({"FSDPModule", "FullyShardedDataParallel"})


def is_fully_sharded(model: Model) -> bool:
    """Whether any module of the model is sharded so."""
    roots = [model] if isinstance(model, nn.Module) else model
    classes = {type(module) for root in roots for module in root.modules()}
    return any(base.__name__ in _WRAPPERS for one in classes for base in one.__mro__)
