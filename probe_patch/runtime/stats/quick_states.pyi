from torch import Tensor

from probe_patch.runtime.stats.tensor_calls import TensorCalls

class QuickStates:
    def __init__(self, calls: TensorCalls) -> None: ...
    def of(self, tensor: Tensor) -> int | None: ...
