"""Blocks are found and taken out by their markers alone; anything else that resembles one is refused."""

import pytest

from probe_patch.patcher.markers import DamagedMarkers, find_blocks, strip_blocks


def strip(source: bytes) -> bytes:
    return strip_blocks(source, find_blocks(source, "actor.py"))


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"x = 1",
        b"# probe-patch is mentioned here\nx = 1\n",
        b'print("probe-patch")\r\n',
        b"# >>> conda initialize >>>\n# <<< conda initialize <<<\n",
    ],
)
def test_noop(source: bytes) -> None:
    assert strip(source) == source


@pytest.mark.parametrize(
    ("source", "stripped"),
    [
        pytest.param(b"a\n# >>> probe-patch init\nx\n# <<< probe-patch init\nb\n", b"a\nb\n", id="plain"),
        pytest.param(b"# >>> probe-patch prelude {}\nx\n# <<< probe-patch prelude\nb\n", b"b\n", id="first"),
        pytest.param(b"a\n  # >>> probe-patch init\n  x\n  # <<< probe-patch init\n", b"a\n", id="last"),
        pytest.param(b"a\r\n# >>> probe-patch init\r\n# <<< probe-patch init\r\nb\r\n", b"a\r\nb\r\n", id="crlf"),
        pytest.param(b"a\r# >>> probe-patch init\r# <<< probe-patch init\rb\r", b"a\rb\r", id="cr"),
        pytest.param(b"a\n# >>> probe-patch init\n# <<< probe-patch init", b"a", id="no final newline"),
        pytest.param(b"a\r\n# >>> probe-patch init\r\n# <<< probe-patch init", b"a", id="no final newline, crlf"),
        pytest.param(b"\x93\n# >>> probe-patch init\n# <<< probe-patch init\n\x94", b"\x93\n\x94", id="not utf-8"),
    ],
)
def test_strip(source: bytes, stripped: bytes) -> None:
    assert strip(source) == stripped


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        (b"a\n# >>> probe-patch init\nb\n", 2, "the block 'init' is not closed"),
        (b"a\n# <<< probe-patch init\nb\n", 2, "it closes a block that was not opened"),
        (b"# >>> probe-patch init\n# <<< probe-patch rollout\n", 2, "it closes a block that was not opened"),
        (
            b"# >>> probe-patch init\n# >>> probe-patch rollout\n",
            2,
            "the block opened on line 1 is not closed before it",
        ),
        (b"x = 1  # >>> probe-patch init\n", 1, "it resembles a probe-patch marker but is none"),
        (b"#>>> probe-patch init\n", 1, "it resembles a probe-patch marker but is none"),
        (b"# # >>> probe-patch init\n", 1, "it resembles a probe-patch marker but is none"),
        (b"# >>> probe-patch Init!\n", 1, "it resembles a probe-patch marker but is none"),
        (b"# <<< probe-patch init # mine\n", 1, "it resembles a probe-patch marker but is none"),
    ],
)
def test_damaged(source: bytes, line: int, reason: str) -> None:
    with pytest.raises(DamagedMarkers, match=f"actor.py, line {line}: {reason}"):
        strip(source)
