"""The patcher's core: bytes in, bytes out, no file touched.

For every source ``x`` that is not refused, with any request:

- ``strip(apply(x)) == x``;
- ``apply(apply(x)) == apply(x)``, and applying another request is ``apply(strip(x))``;
- a file is patched as this version would patch it exactly if ``apply(strip(x)) == x``.

``apply`` checks the first itself, each time, before it returns; the others follow from it.
"""

from dataclasses import dataclass

from probe_patch.errors import Refused
from probe_patch.patcher.comments import comment_lines
from probe_patch.patcher.encoding import encoding_of, split_bom
from probe_patch.patcher.insertion import insert
from probe_patch.patcher.markers import PRELUDE, Block, DamagedMarkers, find_blocks, strip_blocks
from probe_patch.patcher.request import Request
from probe_patch.patcher.syntax import compile_source, parse
from probe_patch.patcher.targets.slime.anchors import find_anchors
from probe_patch.patcher.targets.slime.insertions import slime_insertions
from probe_patch.patcher.targets.slime.notes import slime_notes
from probe_patch.patcher.targets.slime.readback import read_back
from probe_patch.patcher.targets.slime.refusals import refuse_what_is_not_ours


@dataclass(frozen=True)
class Applied:
    """A patched source, and what its user should know of it."""

    source: bytes
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What the markers of a file say.

    Attributes:
        patched: whether there are any.
        request: what they say it was patched with; None where they do not say it in a way that can be read.
    """

    patched: bool
    request: Request | None


def apply(source: bytes, request: Request, where: str) -> Applied:
    """``source`` patched for ``request``, whatever it was patched for before.

    Raises:
        Refused: the sentence says why this file cannot be patched.
    """
    original = strip(source, where)
    parsed = parse(original, where)
    refuse_what_is_not_ours(parsed.tree, where)
    anchors = find_anchors(parsed, request.phases)
    code = insert(parsed.code, slime_insertions(parsed, anchors, request))
    patched = parsed.bom + code
    read_back(compile_source(patched, where), request.phases, where)
    if strip(patched, where) != original:
        raise Refused(f"{where}: it would not come back byte for byte, so nothing is written; please report this file")
    return Applied(patched, slime_notes(parsed, anchors))


def strip(source: bytes, where: str) -> bytes:
    """``source`` without our blocks; the file need not parse.

    Raises:
        DamagedMarkers: the blocks cannot be told from the user's lines.
    """
    bom, code = split_bom(source)
    blocks = find_blocks(code, where)
    _refuse_quoted_markers(code, encoding_of(source), blocks, where)
    return bom + strip_blocks(code, blocks)


def inspect(source: bytes, where: str) -> Found:
    """What the markers of ``source`` say.

    Raises:
        DamagedMarkers: they do not pair up.
    """
    blocks = find_blocks(split_bom(source)[1], where)
    prelude = next((block for block in blocks if block.name == PRELUDE), None)
    return Found(bool(blocks), None if prelude is None else Request.from_detail(prelude.detail))


def _refuse_quoted_markers(code: bytes, encoding: str, blocks: tuple[Block, ...], where: str) -> None:
    """A block quoted in a string (documentation, say) is the user's text and must not be taken out."""
    if not blocks:
        return
    comments = comment_lines(code, encoding)
    if comments is None:
        return
    for block in blocks:
        for number in (block.first, block.last):
            if number not in comments:
                raise DamagedMarkers(
                    f"{where}, line {number + 1}: a probe-patch marker stands in a string, which is not ours to touch"
                )
