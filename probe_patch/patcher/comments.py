"""Which lines of a source hold a comment, as opposed to text in a string that only looks like one."""

import io
import tokenize

from probe_patch.patcher.encoding import BOM, encoding_of


def comment_lines(source: bytes) -> frozenset[int] | None:
    """The lines (from 0) with a comment; None where the source cannot be tokenized."""
    try:
        text = io.StringIO(source.removeprefix(BOM).decode(encoding_of(source)), newline=None)
        tokens = tokenize.generate_tokens(text.readline)
        return frozenset(token.start[0] - 1 for token in tokens if token.type == tokenize.COMMENT)
    except (SyntaxError, tokenize.TokenError, UnicodeDecodeError, LookupError):
        return None
