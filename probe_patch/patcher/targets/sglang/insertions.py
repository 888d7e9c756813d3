"""The blocks that go into SGLang's model_runner.py: always these three."""

from typing import Final

import libcst as cst

from probe_patch.patcher.insertion import Insertion
from probe_patch.patcher.request import Request
from probe_patch.patcher.syntax import Source
from probe_patch.patcher.targets.prelude import prelude
from probe_patch.patcher.targets.sglang.anchors import Anchors
from probe_patch.patcher.template import Identifier, render

_RANK: Final = 1
_RUNTIME: Final = Identifier("sglang")


def sglang_insertions(source: Source, anchors: Anchors, request: Request) -> tuple[Insertion, ...]:
    """Everything ``apply`` adds to this file."""
    values = {"CONFIG": request.config, "DEBUGGER": request.debugger}
    return (
        prelude(source, request, _RUNTIME, render("sglang/prelude.py", values)),
        _decorator(source, "init", anchors.init),
        _decorator(source, "forward", anchors.forward),
    )


def _decorator(source: Source, name: str, method: cst.FunctionDef) -> Insertion:
    """Behind the decorators there are, so that ours is the first to see the function."""
    line = source.definition_line(method)
    return Insertion(line, _RANK, name, render(f"sglang/{name}.py", {}), source.indent(method))
