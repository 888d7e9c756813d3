"""Statistics on CUDA devices by kernels in Triton. What it promises is in ``stats.backends``.

    layout     how a tensor lies in memory, as far as a reduction cares
    variants   how each dtype is read, compared and added up on each sort of device
    backend    what is launched for which tensors
    launching  quick calls of kernels
    kernels    what runs on the device

The module can be imported wherever Triton can; a device is first asked for by ``make``.

**CUDA graphs.** ``TritonBackend.measure`` can be captured once its kernels have run before: it neither waits nor
copies, and rows, tensors and scratch stay where they are. A dump does not measure inside a capture all the same
(``kinds.is_readable``), since that would be wrong in three ways: each replay would overwrite the rows of the one
before, so that they have to be copied out, or their place advanced by a number on the device, before the next replay;
no hook runs at a replay, so that the calls of the capture have to be kept and counted again each time; and rows and
scratch have to live as long as the graph, not as long as a dump's step.
"""

import torch

from probe_patch.errors import BackendUnavailable

try:
    import triton
except ImportError as error:
    raise BackendUnavailable(
        f"Triton cannot be imported ({error}); `pip install triton`, which torch's own wheels for CUDA bring along"
    ) from None

from probe_patch.runtime.stats.backends.triton.backend import TritonBackend, Tuning
from probe_patch.runtime.stats.backends.triton.kernels.one import measure_one
from probe_patch.runtime.stats.backends.triton.queues import CudaQueue, HostQueue
from probe_patch.runtime.stats.backends.triton.scratch import PARTIALS
from probe_patch.runtime.stats.backends.triton.variants import Arithmetic

# Compute capabilities whose float64 runs at half the speed of float32; everywhere else it is 1/32 and less.
# (CUDA C++ programming guide, "Arithmetic instructions".)
_QUICK_FLOAT64 = frozenset({(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)})
_NATIVE_E4M3 = (8, 9)
_OLDEST = (7, 0)

# As many programs as a multiprocessor's registers have room for, without counts and with.
_PROGRAMS_PER_PROCESSOR = {False: 4, True: 2}


def make(device: torch.device, counts: bool) -> TritonBackend:
    """Statistics on a CUDA device; on the host where Triton's interpreter is on (``TRITON_INTERPRET=1``).

    Raises:
        BackendUnavailable: it is another device, or one that Triton compiles nothing for.
    """
    if device.type == "cpu" and not isinstance(measure_one, triton.JITFunction):
        return TritonBackend(device, counts, Arithmetic.FLOAT64, False, HostQueue(), Tuning(programs=4))
    if device.type != "cuda" or torch.version.hip is not None:
        raise BackendUnavailable(f"the Triton kernels run on CUDA devices, which {device} is not")
    capability = torch.cuda.get_device_capability(device)
    if capability < _OLDEST:
        raise BackendUnavailable(f"Triton compiles for compute capability 7.0 and later; {device} has {capability}")
    arithmetic = Arithmetic.FLOAT64 if capability in _QUICK_FLOAT64 else Arithmetic.SLOW_FLOAT64
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    tuning = Tuning(programs=min(PARTIALS, _PROGRAMS_PER_PROCESSOR[counts] * processors))
    return TritonBackend(device, counts, arithmetic, capability >= _NATIVE_E4M3, CudaQueue(device), tuning)
