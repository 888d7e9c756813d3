"""Added lines take the newlines and the indentation of where they stand, and come out again without a trace."""

from hypothesis import given
from hypothesis import strategies as st

from probe_patch.patcher.insertion import Insertion, indent_of, insert
from probe_patch.patcher.markers import find_blocks, split_lines, strip_blocks


def test_a_block_takes_the_newline_of_the_line_before_it() -> None:
    source = b"a\r\nb\nc\n"
    block = b"# >>> probe-patch init\r\nx = 1\r\n# <<< probe-patch init\r\n"
    assert insert(source, [Insertion(1, 1, "init", "x = 1", b"")]) == b"a\r\n" + block + b"b\nc\n"


def test_a_block_behind_a_last_line_without_newline_has_none_either() -> None:
    patched = insert(b"a\r\n  b", [Insertion(2, 1, "init", "x = 1", b"  ")])
    assert patched == b"a\r\n  b\r\n  # >>> probe-patch init\r\n  x = 1\r\n  # <<< probe-patch init"


def test_a_phase_stops_before_the_next_one_starts_on_the_same_line() -> None:
    patched = insert(b"a\n", [Insertion(1, 1, "old-start", "start", b""), Insertion(1, 0, "ref-stop", "stop", b"")])
    assert [line for line in patched.split(b"\n") if b"probe-patch" not in line] == [b"a", b"stop", b"start", b""]


def test_the_opening_marker_carries_its_detail_as_ascii() -> None:
    insertion = Insertion(0, 1, "prelude", "x = 1", b"", (("config", "/ü/\n#"),))
    assert insertion.text()[0] == '# >>> probe-patch prelude {"config": "/\\u00fc/\\n#"}'


def test_indent_of_keeps_tabs_and_form_feeds() -> None:
    assert indent_of(b" \t\x0c x = 1") == b" \t\x0c "


NEWLINES = st.sampled_from([b"\n", b"\r\n", b"\r"])
LINES = st.binary(max_size=12).map(lambda text: text.replace(b"\r", b"").replace(b"\n", b"").replace(b"#", b"x"))


@given(
    lines=st.lists(st.tuples(LINES, NEWLINES), max_size=12),
    last=LINES,
    places=st.lists(st.integers(0, 13), max_size=6, unique=True),
    indent=st.sampled_from([b"", b"    ", b"\t", b"\x0c  "]),
)
def test_whatever_is_inserted_strips_to_the_original(
    lines: list[tuple[bytes, bytes]], last: bytes, places: list[int], indent: bytes
) -> None:
    source = b"".join(text + newline for text, newline in lines) + last
    count = len(split_lines(source))
    insertions = [Insertion(min(place, count), rank, "init", "x = 1\n\ny", indent) for rank, place in enumerate(places)]
    patched = insert(source, insertions)
    blocks = find_blocks(patched, "x")
    assert len(blocks) == len(insertions)
    # A bare \r before our \n would join into one newline; such a file cannot end in "\r" and take a block behind it.
    assert strip_blocks(patched, blocks) == source
