"""The whole round of one file through the command line: what must hold for every version of everything we patch."""

from collections.abc import Sequence
from pathlib import Path

from probe_patch.patcher.rewrite import strip
from tests.cli.running import run


def check_round(tree: Path, file: Path, ways: Sequence[tuple[str, ...]]) -> None:
    """apply, compile, strip, apply again, check, edit, and revert, for each of ``ways``.

    Args:
        tree: holds ``file`` and nothing else to patch.
        file: not patched yet.
        ways: options of ``apply`` and ``check``.
    """
    source = file.read_bytes()
    assert run("check", "--can-apply", tree).code == 0
    for options in ways:
        applied = run("apply", *options, tree)
        assert (applied.code, "already" in applied.out) == (0, False)
        patched = file.read_bytes()
        compile(patched, str(file), "exec", dont_inherit=True)
        assert patched != source
        assert strip(patched, file.name) == source

        again = run("apply", *options, tree)
        assert (again.code, file.read_bytes()) == (0, patched)
        assert "already patched" in again.out
        assert run("check", *options, tree).code == 0
        assert run("check", "--clean", tree).code == 1
        check_edited(tree, file, options)

        assert run("revert", tree).code == 0
        assert file.read_bytes() == source
        assert run("check", tree).code == 1


def check_edited(tree: Path, file: Path, options: tuple[str, ...]) -> None:
    """A line of ours that somebody changed is noticed by ``check``."""
    patched = file.read_bytes()
    ours = b"_probe_patch_os.environ.get("
    assert patched.count(ours) == 1
    file.write_bytes(patched.replace(ours, b"dict().get("))
    outcome = run("check", *options, tree)
    assert (outcome.code, "its blocks or the code they stand in were changed" in outcome.err) == (1, True)
    file.write_bytes(patched)
