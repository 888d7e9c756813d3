"""Text of JSON that grows at its end: what records are written to. See ``ascii_text.py``, which does the same."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport uint64_t
from libc.string cimport memchr, memcpy

from json.encoder import encode_basestring_ascii

cdef extern from "Python.h":
    bint PyUnicode_CheckExact(object value)
    bint PyUnicode_IS_COMPACT_ASCII(object value)
    const char* PyUnicode_1BYTE_DATA(object value)
    Py_ssize_t PyUnicode_GET_LENGTH(object value)

cdef enum:
    # Of the longest integer.
    DIGITS = 20

cdef const char* HEXADECIMAL = "0123456789abcdef"


cdef inline uint64_t _plain(uint64_t word) noexcept:
    """Of eight bytes, each below 128, the highest bit of each that is no control character, quote or backslash."""
    cdef uint64_t highest = <uint64_t> 0x80 * <uint64_t> 0x0101010101010101
    cdef uint64_t lowest = <uint64_t> 0x0101010101010101
    return (
        ((word | highest) - 0x20 * lowest)
        & (((word ^ 0x22 * lowest) | highest) - lowest)
        & (((word ^ 0x5c * lowest) | highest) - lowest)
        & ~(word + lowest)
        & highest
    )


cdef inline bint _stands_as_it_is(object value) noexcept:
    """Whether a value is a string of which JSON needs nothing escaped."""
    return (
        PyUnicode_CheckExact(value)
        and PyUnicode_IS_COMPACT_ASCII(value)
        and _is_plain(PyUnicode_1BYTE_DATA(value), PyUnicode_GET_LENGTH(value))
    )


cdef bint _is_plain(const char* text, Py_ssize_t size) noexcept:
    """Whether ASCII stands in a JSON string as it is."""
    cdef uint64_t highest = <uint64_t> 0x80 * <uint64_t> 0x0101010101010101
    cdef uint64_t word
    cdef Py_ssize_t at = 0
    while at + 8 <= size:
        memcpy(&word, text + at, 8)
        if _plain(word) != highest:
            return False
        at += 8
    if at < size:
        # Spaces in the place of what is not there.
        word = 0x20 * <uint64_t> 0x0101010101010101
        memcpy(&word, text + at, size - at)
        return _plain(word) == highest
    return True


cdef inline int _put(AsciiText text, const char* piece, Py_ssize_t size) except -1:
    if text.size + size > text._most:
        text._make_room(size)
    memcpy(text._first + text.size, piece, size)
    text.size += size
    return 0


cdef class Listed:
    def __init__(self, bytes whole not None, Py_ssize_t count):
        cdef const char* at
        cdef const char* end
        cdef Py_ssize_t place
        self._whole = whole
        self._count = count
        self._room = bytearray()
        PyByteArray_Resize(self._room, (count + 1) * sizeof(Py_ssize_t))
        self._begins = <Py_ssize_t*> PyByteArray_AS_STRING(self._room)
        self._first = PyBytes_AS_STRING(whole)
        self.nulls = []
        self._instead = {}
        end = self._first + PyBytes_GET_SIZE(whole) - 1
        at = self._first + 1
        for place in range(count):
            if at > end:
                raise ValueError(f"these are {place} items, not {count}")
            self._begins[place] = at - self._first
            if at[0] == c'n':
                self.nulls.append(place)
            at = <const char*> memchr(at, c',', end - at)
            if at == NULL:
                at = end
            at += 1
        self._begins[count] = at - self._first

    cpdef replace(self, Py_ssize_t place, str text):
        self._instead[place] = text


cdef class AsciiText:
    def __init__(self):
        self._room = bytearray()
        self._first = PyByteArray_AS_STRING(self._room)

    cdef int _make_room(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t most = max(2 * self._most, self.size + more, 256)
        PyByteArray_Resize(self._room, most)
        self._first = PyByteArray_AS_STRING(self._room)
        self._most = most
        return 0

    cpdef int add(self, str piece) except -1:
        if not PyUnicode_IS_COMPACT_ASCII(piece):
            piece.encode("ascii")
        return _put(self, PyUnicode_1BYTE_DATA(piece), PyUnicode_GET_LENGTH(piece))

    cpdef int add_string(self, object value) except -1:
        cdef Py_ssize_t size
        cdef char* to
        if not _stands_as_it_is(value):
            return self.add(encode_basestring_ascii(value))
        size = PyUnicode_GET_LENGTH(value)
        if self.size + size + 2 > self._most:
            self._make_room(size + 2)
        to = self._first + self.size
        to[0] = c'"'
        memcpy(to + 1, PyUnicode_1BYTE_DATA(value), size)
        to[1 + size] = c'"'
        self.size += size + 2
        return 0

    cpdef int add_inside(self, object value) except -1:
        if not _stands_as_it_is(value):
            return self.add(encode_basestring_ascii(value)[1:-1])
        return _put(self, PyUnicode_1BYTE_DATA(value), PyUnicode_GET_LENGTH(value))

    cpdef int add_key(self, str before, object name) except -1:
        cdef Py_ssize_t size
        cdef char* to
        self.add(before)
        if not _stands_as_it_is(name):
            self.add(encode_basestring_ascii(name))
            return self.add(": ")
        size = PyUnicode_GET_LENGTH(name)
        if self.size + size + 4 > self._most:
            self._make_room(size + 4)
        to = self._first + self.size
        to[0] = c'"'
        memcpy(to + 1, PyUnicode_1BYTE_DATA(name), size)
        to += 1 + size
        to[0] = c'"'
        to[1] = c':'
        to[2] = c' '
        self.size += size + 4
        return 0

    cpdef int add_integer(self, uint64_t value) except -1:
        cdef char digits[DIGITS]
        cdef int at = DIGITS
        while True:
            at -= 1
            digits[at] = <char> (c'0' + value % 10)
            value //= 10
            if value == 0:
                return _put(self, digits + at, DIGITS - at)

    cpdef int add_hexadecimal(self, uint64_t value, int digits) except -1:
        cdef int at
        if self.size + digits > self._most:
            self._make_room(digits)
        for at in range(digits - 1, -1, -1):
            self._first[self.size + at] = HEXADECIMAL[value & 15]
            value >>= 4
        self.size += digits
        return 0

    cpdef int add_listed(self, tuple around, Listed values, Py_ssize_t place) except -1:
        cdef Py_ssize_t number, begin
        cdef Py_ssize_t count = len(around) - 1
        if place < 0 or count < 0 or count > values._count - place:
            raise IndexError(place)
        for number in range(count):
            self.add(<str?> <object> PyTuple_GET_ITEM(around, number))
            begin = values._begins[place + number]
            if values._first[begin] == c'n':
                self.add(values._instead.get(place + number, "null"))
            else:
                _put(self, values._first + begin, values._begins[place + number + 1] - 1 - begin)
        return self.add(<str?> <object> PyTuple_GET_ITEM(around, count))

    cpdef int cut(self, Py_ssize_t size) except -1:
        if 0 <= size < self.size:
            self.size = size
        return 0

    cpdef object view(self):
        return memoryview(self._room)[:self.size]
