"""The patcher's core: bytes in, bytes out, no file touched.

For every source ``x`` that is not refused, with any request:

- ``strip(apply(x)) == x``;
- ``apply(apply(x)) == apply(x)``, and applying another request is ``apply(strip(x))``;
- a file is patched as this version would patch it exactly if ``apply(strip(x)) == x``.

``apply`` checks the first itself, each time, before it returns; the others follow from it.
"""

import ast
from dataclasses import dataclass

from probe_patch.config import Side
from probe_patch.errors import Refused
from probe_patch.patcher.comments import comment_lines
from probe_patch.patcher.encoding import encoding_of, split_bom
from probe_patch.patcher.insertion import insert
from probe_patch.patcher.markers import PRELUDE, Block, DamagedMarkers, find_blocks, strip_blocks
from probe_patch.patcher.request import Request
from probe_patch.patcher.syntax import compile_source, parse
from probe_patch.patcher.targets.choice import kind_of, refuse_strangers
from probe_patch.patcher.targets.kind import Kind, NeedsNoPatch


@dataclass(frozen=True)
class Applied:
    """A patched source.

    Attributes:
        source: its bytes.
        side: the side of a run that it belongs to.
        request: what it is patched for: what was asked for, without what means nothing to this kind of file.
        notes: what its user should know of it.
    """

    source: bytes
    side: Side
    request: Request
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What a file is.

    Attributes:
        side: the side of a run that it belongs to.
        patched: whether it has markers of ours.
        request: what they say it was patched with; None where they do not say it in a way that can be read.
        needs_no_patch: the refusal of an unpatched file that dumps without a patch; None for all others.
    """

    side: Side
    patched: bool
    request: Request | None
    needs_no_patch: NeedsNoPatch | None = None


def apply(source: bytes, request: Request, where: str) -> Applied:
    """``source`` patched for ``request``, whatever it was patched for before.

    Raises:
        NeedsNoPatch: what the file belongs to dumps without a patch.
        Refused: the sentence says why this file cannot be patched.
    """
    original = strip(source, where)
    parsed = parse(original, where)
    refuse_strangers(parsed.tree, where)
    kind = kind_of(parsed.tree, where)
    effective = kind.effective(request)
    kind.refuse(parsed.tree, where)
    plan = kind.plan(parsed, effective)
    patched = parsed.bom + insert(parsed.code, plan.insertions)
    kind.read_back(compile_source(patched, where), effective, where)
    if strip(patched, where) != original:
        raise Refused(f"{where}: it would not come back byte for byte, so nothing is written; please report this file")
    return Applied(patched, kind.side, effective, plan.notes)


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
    """What ``source`` is, as far as its markers and its kind tell; it need not parse.

    Raises:
        DamagedMarkers: the markers do not pair up, or stand in a string.
        Refused: it has no markers and is of no kind that is patched.
    """
    code = split_bom(source)[1]
    blocks = find_blocks(code, where)
    _refuse_quoted_markers(code, encoding_of(source), blocks, where)
    tree = _tree_of(source, where)
    kind = kind_of(tree, where)
    if not blocks:
        refuse_strangers(tree, where)
        return Found(kind.side, False, None, None if tree is None else _no_need(kind, tree, where))
    prelude = next((block for block in blocks if block.name == PRELUDE), None)
    request = None if prelude is None else Request.from_detail(prelude.detail)
    # A marker that says what its kind of file does not write was changed by hand.
    readable = request is not None and kind.effective(request) == request
    return Found(kind.side, True, request if readable else None)


def _tree_of(source: bytes, where: str) -> ast.Module | None:
    try:
        return compile_source(source, where)
    except Refused:
        return None


def _no_need(kind: Kind, tree: ast.Module, where: str) -> NeedsNoPatch | None:
    try:
        kind.refuse(tree, where)
    except NeedsNoPatch as needs_no_patch:
        return needs_no_patch
    except Refused:
        pass
    return None


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
