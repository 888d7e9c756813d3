"""What the compilers make of the Triton kernels: `make kernels-report`. Needs no GPU, and takes a minute or two.

One table in Markdown: registers of a thread, bytes spilled, and the widest load, by kernel, dtype and architecture;
without counts and with.
"""

import re
import sys

import torch

from probe_patch.runtime.stats.backends.triton.variants import Arithmetic, variants
from tests.kernels.triton import ahead

ARCHITECTURES = (80, 90, 100)
KERNELS = ("dense", "several", "rows", "merging")


def main() -> None:
    chosen = [getattr(torch, name) for name in sys.argv[1:]]
    dtypes = chosen or list(variants(Arithmetic.FLOAT64, native_e4m3=False))
    print(f"| kernel | dtype | {' | '.join(f'sm_{architecture}' for architecture in ARCHITECTURES)} |")
    print(f"|---|---|{'---|' * len(ARCHITECTURES)}")
    for kernel in KERNELS:
        for dtype in dtypes:
            cells = [_cell(kernel, dtype, architecture) for architecture in ARCHITECTURES]
            print(f"| {kernel} | {dtype} | {' | '.join(cells)} |", flush=True)


def _cell(kernel: str, dtype: torch.dtype, architecture: int) -> str:
    plain, counting = (_compiled(kernel, dtype, architecture, counts) for counts in (False, True))
    spilled = max(plain.spilled, counting.spilled)
    return f"{plain.registers}, {counting.registers}; {spilled or 'none'} spilled; {_widest(plain)}"


def _compiled(kernel: str, dtype: torch.dtype, architecture: int, counts: bool) -> ahead.Compiled:
    plan = ahead.plan(dtype, architecture, Arithmetic.FLOAT64, counts)
    if kernel == "rows":
        return ahead.strided(plan, architecture, 128, even=True)
    return {"dense": ahead.dense, "several": ahead.several, "merging": ahead.merging}[kernel](plan, architecture)


def _widest(compiled: ahead.Compiled) -> str:
    def size(load: str) -> int:
        numbers = re.findall(r"\d+", load)
        return int(numbers[-1]) * (int(numbers[0]) if len(numbers) > 1 else 1)

    return max(compiled.loads, key=size, default="no load")


if __name__ == "__main__":
    main()
