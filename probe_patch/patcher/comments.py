"""Which lines of a source hold a comment, as opposed to text in a string that only looks like one."""

import io
import tokenize


def comment_lines(code: bytes, encoding: str) -> frozenset[int] | None:
    """The lines (from 0) with a comment; None where the code (without a byte-order mark) cannot be tokenized."""
    try:
        text = io.StringIO(code.decode(encoding), newline=None)
        tokens = tokenize.generate_tokens(text.readline)
        return frozenset(token.start[0] - 1 for token in tokens if token.type == tokenize.COMMENT)
    except (SyntaxError, tokenize.TokenError, UnicodeDecodeError, LookupError):
        return None
