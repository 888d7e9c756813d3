"""Values whose bytes lie in memory in all sorts of ways."""

import torch
from torch import Tensor

VALUES: dict[str, Tensor] = {
    "flat": torch.randn(7, 5),
    "transposed": torch.randn(7, 5).T,
    "sliced": torch.randn(3, 5, 7).bfloat16()[:, ::2, 1:],
    "repeated": torch.randn(5).half().expand(6, 5),
    "fp8": torch.randn(40).to(torch.float8_e5m2)[3:],
    "bool": torch.randint(2, (77,)).bool()[1:],
    "float64": torch.randn(9, dtype=torch.float64)[1:],
    "complex": torch.randn(9, dtype=torch.complex64),
    "conjugate": torch.randn(9, dtype=torch.complex64).conj(),
    "negative": torch.randn(9, dtype=torch.complex64).conj().imag,
    "scalar": torch.tensor(3, dtype=torch.int16),
    "bytes": torch.randint(256, (9, 11), dtype=torch.uint8).T,
    "one-byte": torch.randint(256, (1, 1), dtype=torch.uint8),
    "empty": torch.empty(0, 3),
}
