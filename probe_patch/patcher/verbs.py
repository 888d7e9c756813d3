"""``apply``, ``revert``, ``check`` and ``status``: find, rewrite, write, and say what happened. Prints nothing."""

import enum
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from probe_patch import __version__
from probe_patch.debuggers import BUILTIN, DebuggerName
from probe_patch.dump_format import Phase
from probe_patch.errors import ProbePatchError, Refused
from probe_patch.patcher import rewrite, transaction
from probe_patch.patcher.discovery import Target
from probe_patch.patcher.markers import split_lines
from probe_patch.patcher.request import ALL_PHASES, Request
from probe_patch.patcher.result import Result, State
from probe_patch.patcher.targets.kind import NeedsNoPatch
from probe_patch.patcher.transaction import Change, Snapshot


class Expectation(enum.Enum):
    """What ``check`` is to find: patched as by this version; unpatched; unpatched with every anchor in place."""

    PATCHED = "patched"
    CLEAN = "clean"
    CAN_APPLY = "can-apply"


_MODES = frozenset({"extend"})

# More foreign lines than this are rather a formatter's work than an edit.
_FEW = 3

Verb = Callable[[Target, Snapshot], Result]


def apply(targets: Sequence[Target], request: Request, dry_run: bool, modes: frozenset[str] = _MODES) -> list[Result]:
    """Patch every target, or none of them where one is refused (its result says why).

    A target that needs no patch is passed over, and refused where there is no other.

    Args:
        targets: the files.
        request: what to patch them for.
        dry_run: whether to write nothing.
        modes: the modes of forwards that are dumped (``extend``, ``decode``, ``all``), for what is said of a target
            that needs no patch.

    Raises:
        SystemFailed: the files could not be written; all are as before.
    """
    return _rewrite_all(targets, lambda target, before: _applied(target, before, request, modes), dry_run)


def revert(targets: Sequence[Target], dry_run: bool) -> list[Result]:
    """Strip every target, or none of them where one is refused (its result says why).

    Raises:
        SystemFailed: the files could not be written; all are as before.
    """
    return _rewrite_all(targets, _reverted, dry_run)


def check(
    targets: Sequence[Target],
    expectation: Expectation,
    phases: tuple[Phase, ...] | None,
    debugger: DebuggerName | None = None,
) -> list[Result]:
    """Compare every target with what it should be; nothing is written.

    Phases and a debugger that are None are those that the target was patched for, as far as it is.

    A target that needs no patch is as it should be. What ``apply`` would refuse is refused with its reason, unless
    it is only to be clean.
    """
    match expectation:
        case Expectation.CLEAN:
            return [_guarded(target, _checked_clean) for target in targets]
        case Expectation.PATCHED:
            return [
                _guarded(target, lambda target, before: _checked(target, before, phases, debugger))
                for target in targets
            ]
        case Expectation.CAN_APPLY:
            return _something_to_patch(
                [
                    _guarded(target, lambda target, before: _checked_can_apply(target, before, phases, debugger))
                    for target in targets
                ]
            )


def status(targets: Sequence[Target]) -> list[Result]:
    """What every target is; nothing is written."""
    return [_guarded(target, _described) for target in targets]


def _rewrite_all(targets: Sequence[Target], verb: Verb, dry_run: bool) -> list[Result]:
    if dry_run:
        return _something_to_patch([_guarded(target, verb) for target in targets])
    with transaction.locked([target.path for target in targets]):
        results = _something_to_patch([_guarded(target, verb) for target in targets])
        if any(result.error for result in results):
            return [result if result.error else _guarded(result.target, _described) for result in results]
        transaction.commit(
            [Change(result.before, result.after) for result in results if result.before and result.changed]
        )
        return results


def _something_to_patch(results: list[Result]) -> list[Result]:
    """``results``; where nothing among them could be patched because nothing needs it, each says so as a refusal."""
    if not all(result.state is State.NATIVE for result in results):
        return results
    return [
        replace(
            result,
            state=State.REFUSED,
            as_expected=False,
            notes=result.notes[:-1],
            error=Refused(f"{result.target.shown}: {result.notes[-1]}"),
        )
        for result in results
    ]


def _guarded(target: Target, verb: Verb) -> Result:
    try:
        before = transaction.read(target.path)
        result = _unless_native(target, before, verb)
    except ProbePatchError as error:
        return Result(target, State.REFUSED, as_expected=False, notes=target.notes, error=error)
    return replace(result, notes=(*target.notes, *result.notes))


def _unless_native(target: Target, before: Snapshot, verb: Verb) -> Result:
    try:
        return verb(target, before)
    except NeedsNoPatch as found:
        return _native(target, before, found)


def _native(
    target: Target,
    before: Snapshot,
    found: NeedsNoPatch,
    modes: frozenset[str] = _MODES,
    debugger: DebuggerName = BUILTIN,
) -> Result:
    """Its last note says what to do instead."""
    notes = (found.instead(target.path, modes, debugger),)
    return Result(target, State.NATIVE, before, before.content, found.side, notes=notes)


def _applied(target: Target, before: Snapshot, request: Request, modes: frozenset[str]) -> Result:
    try:
        applied = rewrite.apply(before.content, request, target.shown)
    except NeedsNoPatch as found:
        native = _native(target, before, found, modes, request.debugger)
        return replace(native, notes=(*_config_not_written_down(request), *native.notes))
    result = Result(target, State.PATCHED, before, applied.source, applied.side, applied.request)
    if not result.changed:
        return result
    lost = _lines_added_by_hand(before.content, rewrite.strip(before.content, target.shown), target.shown)
    replaced = _replaced(rewrite.inspect(before.content, target.shown).request, request)
    notes = (*replaced, *lost, *applied.notes)
    return replace(result, notes=notes)


def _config_not_written_down(request: Request) -> tuple[str, ...]:
    if request.config is None or request.debugger != BUILTIN:
        return ()
    return (
        f"is not patched, so {request.config} is not written down for it; set PROBE_PATCH_ROLLOUT_CONFIG or "
        f"PROBE_PATCH_CONFIG for the run (probe-patch env --config {shlex.quote(request.config)})",
    )


def _replaced(earlier: Request | None, request: Request) -> Iterator[str]:
    """What an earlier patch had been told and this one was not."""
    if earlier is None:
        return
    if earlier.config not in (None, request.config):
        yield f"no longer names {earlier.config}; apply with --config {earlier.config} to name it again"
    if earlier.debugger not in (BUILTIN, request.debugger):
        yield f"no longer drives {earlier.debugger}; apply with --debugger {earlier.debugger} to drive it again"


def _reverted(target: Target, before: Snapshot) -> Result:
    stripped = rewrite.strip(before.content, target.shown)
    notes = _lines_added_by_hand(before.content, stripped, target.shown)
    side = rewrite.inspect(before.content, target.shown).side
    return Result(target, State.UNPATCHED, before, stripped, side, notes=notes)


def _lines_added_by_hand(patched: bytes, stripped: bytes, where: str) -> tuple[str, ...]:
    """A sentence about lines that somebody else wrote between our markers and that we take away with them."""
    request = rewrite.inspect(patched, where).request
    if request is None or request.version != __version__:
        return ()
    try:
        ours = rewrite.apply(stripped, request, where).source
    except ProbePatchError:
        return ()
    foreign = list((Counter(split_lines(patched)) - Counter(split_lines(ours))).elements())
    shown = [line.decode("utf-8", "replace").strip() for line in foreign if line.strip()]
    if len(shown) > _FEW:
        return (f"takes away {len(shown)} lines between its markers that it did not write so, such as: {shown[0]}",)
    return tuple(f"takes away a line that was added between its markers by hand: {line}" for line in shown)


def _checked(
    target: Target, before: Snapshot, phases: tuple[Phase, ...] | None, debugger: DebuggerName | None
) -> Result:
    found = rewrite.inspect(before.content, target.shown)
    result = Result(target, State.OUTDATED, before, before.content, found.side, found.request, as_expected=False)
    if found.needs_no_patch is not None:
        raise found.needs_no_patch
    if found.request is None:
        rewrite.apply(before.content, Request(phases or ALL_PHASES), target.shown)
    if not found.patched:
        return replace(result, state=State.UNPATCHED, notes=("is not patched; run probe-patch apply",))
    if found.request is None:
        return replace(result, notes=("its opening marker was changed by hand; run probe-patch apply",))
    wanted = replace(
        found.request,
        version=__version__,
        phases=phases or found.request.phases,
        debugger=debugger or found.request.debugger,
    )
    applied = rewrite.apply(before.content, wanted, target.shown)
    if applied.source == before.content:
        return replace(result, state=State.PATCHED, as_expected=True)
    return replace(result, notes=(_difference(found.request, applied.request),))


def _difference(found: Request, wanted: Request) -> str:
    if found.phases != wanted.phases:
        return f"is patched for phases {','.join(found.phases)}, not {','.join(wanted.phases)}"
    if found.debugger != wanted.debugger:
        return f"drives the debugger {found.debugger}, not {wanted.debugger}"
    if found.version != wanted.version:
        return f"was patched by probe-patch {found.version}, this is {wanted.version}; run probe-patch apply"
    return "its blocks or the code they stand in were changed since it was patched; run probe-patch apply"


def _checked_clean(target: Target, before: Snapshot) -> Result:
    result = _described(target, before)
    if result.state in (State.UNPATCHED, State.NATIVE):
        return result
    return replace(result, as_expected=False, notes=("is patched; run probe-patch revert",))


def _checked_can_apply(
    target: Target, before: Snapshot, phases: tuple[Phase, ...] | None, debugger: DebuggerName | None
) -> Result:
    result = _checked_clean(target, before)
    request = Request(phases or ALL_PHASES, debugger=debugger or BUILTIN)
    applied = rewrite.apply(before.content, request, target.shown)
    return replace(result, notes=(*result.notes, *applied.notes))


def _described(target: Target, before: Snapshot) -> Result:
    found = rewrite.inspect(before.content, target.shown)
    if found.needs_no_patch is not None:
        return _native(target, before, found.needs_no_patch)
    if not found.patched:
        return Result(target, State.UNPATCHED, before, before.content, found.side)
    current = found.request is not None and _is_current(before, found.request, target.shown)
    state = State.PATCHED if current else State.OUTDATED
    return Result(target, state, before, before.content, found.side, found.request)


def _is_current(before: Snapshot, request: Request, where: str) -> bool:
    try:
        wanted = replace(request, version=__version__)
        return rewrite.apply(before.content, wanted, where).source == before.content
    except ProbePatchError:
        return False
