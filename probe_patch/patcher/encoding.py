"""The encoding of a Python source, by PEP 263, for every kind of newline that Python accepts.

``tokenize.detect_encoding`` looks for the cookie in lines that end in ``\\n`` only, and so misjudges files with bare
``\\r``.
"""

import re

BOM = b"\xef\xbb\xbf"

_COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK_OR_COMMENT = re.compile(rb"[ \t\f]*(?:#|$)")


def split_bom(source: bytes) -> tuple[bytes, bytes]:
    """The byte-order mark, or nothing, and the rest."""
    return (BOM, source[len(BOM) :]) if source.startswith(BOM) else (b"", source)


def encoding_of(source: bytes) -> str:
    """The name in the cookie, unchecked; UTF-8 where there is none, or a byte-order mark."""
    if source.startswith(BOM):
        return "utf-8"
    for line in re.split(rb"\r\n|\r|\n", source, maxsplit=2)[:2]:
        if cookie := _COOKIE.match(line):
            return cookie[1].decode("ascii", "replace")
        if not _BLANK_OR_COMMENT.match(line):
            break
    return "utf-8"


def keeps_ascii(encoding: str) -> bool:
    """Whether text in this encoding has the bytes of ASCII wherever it is ASCII."""
    everything = bytes(range(1, 128))
    try:
        return everything.decode(encoding) == everything.decode("ascii")
    except (LookupError, UnicodeDecodeError):
        return False
