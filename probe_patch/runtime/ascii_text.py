"""Text of JSON that grows at its end: what records are written to.

This is what stands in for ``ascii_text.pyx`` where nothing is compiled; both do the same. Text is ASCII, as JSON can be
all of it: every other character is escaped.
"""

from json.encoder import encode_basestring_ascii


class Listed:
    """The items of a JSON array without any space.

    Args:
        whole: the array, with its brackets.
        count: how many items it has.

    Raises:
        ValueError: it has fewer.

    Attributes:
        nulls: the places of those that are null.
    """

    def __init__(self, whole: bytes, count: int) -> None:
        self._items = whole[1:-1].split(b",", count)[:count]
        if len(self._items) < count:
            raise ValueError(f"these are {len(self._items)} items, not {count}")
        self.nulls = [place for place, item in enumerate(self._items) if item.startswith(b"n")]

    def replace(self, place: int, text: str) -> None:
        """Put text in the place of a null."""
        self._items[place] = text.encode("ascii")

    def items(self, place: int, count: int) -> list[bytes]:
        """So many of them, from this one on; for ``AsciiText``.

        Raises:
            IndexError: there are not as many.
        """
        if not 0 <= place <= place + count <= len(self._items):
            raise IndexError(place)
        return self._items[place : place + count]


class AsciiText:
    """Text, to which pieces are added without being kept one by one.

    Attributes:
        size: in characters.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()

    @property
    def size(self) -> int:
        return len(self._bytes)

    def add(self, piece: str) -> None:
        """Add text as it is.

        Raises:
            UnicodeEncodeError: it is not ASCII.
        """
        self._bytes += piece.encode("ascii")

    def add_string(self, value: str) -> None:
        """Add a string as JSON.

        Raises:
            TypeError: it is none.
        """
        self._bytes += encode_basestring_ascii(value).encode()

    def add_inside(self, value: str) -> None:
        """Add a string as it stands between the quotes of a JSON string.

        Raises:
            TypeError: it is none.
        """
        self._bytes += encode_basestring_ascii(value)[1:-1].encode()

    def add_integer(self, value: int) -> None:
        """Add an integer of at most 64 bits that is not negative."""
        self._bytes += b"%d" % value

    def add_hexadecimal(self, value: int, digits: int) -> None:
        """Add the last hexadecimal digits of such an integer, zeros included."""
        self._bytes += (b"%0*x" % (digits, value))[-digits:]

    def add_key(self, before: str, name: str) -> None:
        """Add text as it is, and behind it a string as the key of a member.

        Raises:
            TypeError: the name is none.
        """
        self._bytes += f"{before}{encode_basestring_ascii(name)}: ".encode("ascii")

    def add_listed(self, around: tuple[str, ...], values: Listed, place: int) -> None:
        """Add items from this one on, each between two of the texts around them.

        Raises:
            IndexError: there are not as many.
        """
        *before, last = around
        for text, item in zip(before, values.items(place, len(before)), strict=True):
            self._bytes += text.encode("ascii")
            self._bytes += item
        self._bytes += last.encode("ascii")

    def cut(self, size: int) -> None:
        """Drop what is behind the first so many characters."""
        del self._bytes[size:]

    def view(self) -> memoryview:
        """The text as bytes, to be released before any is added or dropped."""
        return memoryview(self._bytes)
