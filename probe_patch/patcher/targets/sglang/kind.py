"""How SGLang's model_runner.py is patched."""

from dataclasses import replace
from typing import Final

from probe_patch.debuggers import limits_of
from probe_patch.patcher.request import Request
from probe_patch.patcher.syntax import Source
from probe_patch.patcher.targets.kind import Kind, Plan
from probe_patch.patcher.targets.sglang.anchors import find_anchors
from probe_patch.patcher.targets.sglang.insertions import sglang_insertions
from probe_patch.patcher.targets.sglang.notes import SGLANG_NOTES
from probe_patch.patcher.targets.sglang.readback import read_back
from probe_patch.patcher.targets.sglang.refusals import refuse_what_is_not_ours


def _effective(request: Request) -> Request:
    """Phases are slime's."""
    return replace(request, phases=())


def _plan(source: Source, request: Request) -> Plan:
    notes = (*SGLANG_NOTES, *limits_of(request.debugger))
    return Plan(sglang_insertions(source, find_anchors(source), request), notes)


SGLANG: Final = Kind("rollout", _effective, refuse_what_is_not_ours, _plan, read_back)
