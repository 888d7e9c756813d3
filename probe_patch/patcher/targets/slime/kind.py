"""How slime's actor is patched."""

from dataclasses import replace
from typing import Final

from probe_patch.debuggers import limits_of
from probe_patch.patcher.request import ALL_PHASES, Request
from probe_patch.patcher.syntax import Source
from probe_patch.patcher.targets.kind import Kind, Plan
from probe_patch.patcher.targets.slime.anchors import find_anchors
from probe_patch.patcher.targets.slime.insertions import slime_insertions
from probe_patch.patcher.targets.slime.notes import slime_notes
from probe_patch.patcher.targets.slime.readback import read_back
from probe_patch.patcher.targets.slime.refusals import refuse_what_is_not_ours


def _effective(request: Request) -> Request:
    return request if request.phases else replace(request, phases=ALL_PHASES)


def _plan(source: Source, request: Request) -> Plan:
    anchors = find_anchors(source, request.phases)
    notes = (*slime_notes(source, anchors), *limits_of(request.debugger))
    return Plan(slime_insertions(source, anchors, request), notes)


SLIME: Final = Kind("train", _effective, refuse_what_is_not_ours, _plan, read_back)
