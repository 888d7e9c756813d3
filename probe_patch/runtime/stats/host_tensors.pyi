from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from torch import Tensor

from probe_patch.runtime.stats.table import DeviceRows
from probe_patch.runtime.stats.tensor_calls import TensorCalls

T = TypeVar("T")

class HostTensors(Generic[T]):
    @property
    def row(self) -> int: ...
    def __init__(
        self,
        measure: int,
        measure_strided: int,
        flags: Mapping[tuple[int, int], int],
        describe: Callable[[Tensor], T],
        calls: TensorCalls | None,
    ) -> None: ...
    def take(self, tensor: Tensor, rows: DeviceRows) -> T | None: ...
