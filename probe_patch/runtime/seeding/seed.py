"""Seeds, and the settings that make computations repeat themselves."""

import os
import random
import sys
from typing import Any, Final

import torch

from probe_patch.errors import WrongUsage
from probe_patch.runtime.log import LOGGER
from probe_patch.runtime.seeding.dropout import remove_dropout
from probe_patch.runtime.seeding.repeat import repeat_every_draw

LARGEST_SEED: Final = 2**32 - 1

# Read by Ascend's libraries when they set up a communicator or an operator; names and values as in msProbe (26.2.0).
_NPU_DETERMINISM: Final = {
    "HCCL_DETERMINISTIC": "True",
    "LCCL_DETERMINISTIC": "1",
    "CLOSE_MATMUL_K_SHIFT": "1",
    "ATB_LLM_LCOC_ENABLE": "0",
}


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False, is_enhanced: bool = False) -> None:
    """Seed Python's, NumPy's and torch's generators on every device, as msProbe's does.

    CUDA is never initialised by it, and its settings are left alone unless ``mode`` is on; call it before the first
    computation on a device then, as libraries read some settings only once.

    Args:
        seed: 0 to 2**32 - 1.
        mode: only deterministic algorithms, as ``torch.use_deterministic_algorithms(mode)``; on, also those of cuDNN,
            cuBLAS and, where torch_npu is loaded, Ascend's libraries.
        rm_dropout: dropout lets everything pass from now on: the functions of ``torch.nn.functional``, which the
            modules of ``torch.nn`` call.
        is_enhanced: from now on, every call of a random function draws what the first one would. For comparing programs
            that draw in a different order; training with it is not sensible.

    Raises:
        WrongUsage: an argument of the wrong type, or a seed out of bounds.
    """
    _check(seed, mode=mode, rm_dropout=rm_dropout, is_enhanced=is_enhanced)
    _seed(seed)
    torch.use_deterministic_algorithms(mode)
    if mode:
        _ask_for_determinism()
    if rm_dropout:
        remove_dropout()
    if is_enhanced:
        repeat_every_draw(seed)


def _check(seed: object, **switches: object) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST_SEED:
        raise WrongUsage(f"seed_all: seed is {seed!r}; pass a whole number from 0 to {LARGEST_SEED}")
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise WrongUsage(f"seed_all: {name} is {value!r}; pass True or False")


def _seed(seed: int) -> None:
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)  # for processes that start from here
    numpy = _numpy()
    if numpy is not None:
        numpy.random.seed(seed)
    # Other devices' generators as well; those of devices not in use yet are seeded once they are.
    torch.manual_seed(seed)


def _ask_for_determinism() -> None:
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    if torch.version.cuda is not None:
        is_late: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        if is_late and "CUBLAS_WORKSPACE_CONFIG" not in os.environ:
            LOGGER.warning(
                "probe-patch: seed_all(mode=True) came after CUDA was first used, and cuBLAS may have read its "
                "settings; call it earlier, or start the program with CUBLAS_WORKSPACE_CONFIG=:4096:8"
            )
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    if "torch_npu" in sys.modules:
        os.environ.update(_NPU_DETERMINISM)


def _numpy() -> Any:
    """Imported if it is there: a later import elsewhere would seed it at random."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy
