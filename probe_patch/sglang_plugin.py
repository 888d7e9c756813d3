"""What SGLang 0.5.11 and later load of us: with ``DUMP_ON`` on, ModelRunner dumps as if its source were patched.

SGLang calls ``register`` when its processes start: it is the entry point ``probe-patch`` of the group
``sglang.srt.plugins``, and ``SGLANG_PLUGINS``, where it is set, must name it. Two facts of 0.5.11 to 0.5.23 decide how
it wraps:

- ``register`` runs before ModelRunner's module is imported, in a scheduler process before its log, device and
  configuration are set up. SGLang's own hook registry would import that module there and then, in the launcher and the
  detokenizer too. So the module is wrapped when SGLang imports it itself. The wrappers are then the innermost ones:
  hooks of other plugins go around them, and a subclass inherits them.
- what a plugin raises is logged and forgotten. A run that asked for a dump that cannot be had stops where SGLang
  listens: at the import of ModelRunner, or at its ``__init__``, before the model is loaded.

Ray actors (``--use-ray``) and ``bench_one_batch`` load no plugins: there, call ``register`` before a ModelRunner
is made.
"""

from __future__ import annotations

import os
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

from probe_patch import __version__
from probe_patch.errors import Refused, WrongUsage
from probe_patch.gate import dump_is_on
from probe_patch.when_imported import when_imported

if TYPE_CHECKING:
    from types import ModuleType

MODEL_RUNNER = "sglang.srt.model_executor.model_runner"


def register() -> None:
    """Have ModelRunner wrapped if ``DUMP_ON`` is on; off, leave the process as it is.

    Raises:
        WrongUsage: ``DUMP_ON`` is neither on nor off; every ModelRunner made from here on raises it as well.
    """
    try:
        dump = dump_is_on(os.environ)
    except WrongUsage as error:
        when_imported(MODEL_RUNNER, partial(refuse_model_runner, error))
        raise
    if dump:
        when_imported(MODEL_RUNNER, wrap_model_runner)


def wrap_model_runner(module: ModuleType) -> None:
    """Wrap ``ModelRunner.__init__`` and ``.forward`` of a module just imported, unless ``apply`` has patched it.

    Raises:
        Refused: there is no such class, or it lacks one of the two.
        ImportError: the runtime cannot be imported.
    """
    if "_probe_patch" in vars(module):
        return
    runner, init, forward = _model_runner(module)
    from probe_patch.runtime.sglang import Probe

    probe = Probe(None)
    runner.__init__ = probe.init(init)
    runner.forward = probe.forward(forward)


def refuse_model_runner(error: WrongUsage, module: ModuleType) -> None:
    """Have ``ModelRunner.__init__`` raise ``error``."""

    def refusing(_runner: object, *_args: object, **_kwargs: object) -> None:
        raise error

    runner, _, _ = _model_runner(module)
    runner.__init__ = refusing


def _model_runner(module: ModuleType) -> tuple[Any, FunctionType, FunctionType]:
    runner = getattr(module, "ModelRunner", None)
    init, forward = getattr(runner, "__init__", None), getattr(runner, "forward", None)
    if not isinstance(init, FunctionType) or not isinstance(forward, FunctionType):
        raise Refused(
            f"DUMP_ON is set, but {module.__name__} has no class ModelRunner with __init__ and forward: "
            f"probe-patch {__version__} does not know this SGLang; unset DUMP_ON, or install a version that does"
        )
    return runner, init, forward
