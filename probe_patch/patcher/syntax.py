"""A Python source as LibCST sees it, with the line numbers of its bytes.

LibCST finds the statements; the patch itself is made on the bytes, line by line. Both count lines alike only while the
encoding leaves ASCII alone, which is checked here once, so nothing later has to think about encodings.
"""

import ast
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from probe_patch.errors import Refused
from probe_patch.patcher.encoding import encoding_of, keeps_ascii, split_bom
from probe_patch.patcher.insertion import indent_of
from probe_patch.patcher.markers import split_lines
from probe_patch.patcher.tree import children, walk

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_MEND = "mend the file, or run probe-patch with the Python that runs it"
_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Source:
    """A parsed file.

    Attributes:
        code: its bytes, without a byte-order mark.
        bom: the byte-order mark, or nothing.
        where: its name for messages.
        tree: what Python's own parser makes of it.
        wrapper: the LibCST tree and its metadata.
    """

    code: bytes
    bom: bytes
    where: str
    tree: ast.Module
    wrapper: MetadataWrapper

    @property
    def module(self) -> cst.Module:
        return self.wrapper.module

    @cached_property
    def lines(self) -> list[bytes]:
        return split_lines(self.code)

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, CodeRange]:
        return self.wrapper.resolve(PositionProvider)

    @cached_property
    def _parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        return {child: node for node in walk(self.module) for child in children(node)}

    def around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What ``node`` stands in, from the inside out."""
        parent = self._parents.get(node)
        while parent is not None:
            yield parent
            parent = self._parents.get(parent)

    def first_line(self, node: cst.CSTNode) -> int:
        """The line (from 0) a statement begins on, its decorators included."""
        if isinstance(node, cst.FunctionDef | cst.ClassDef) and node.decorators:
            node = node.decorators[0]
        return self._positions[node].start.line - 1

    def definition_line(self, node: cst.FunctionDef) -> int:
        """The line (from 0) of a function's ``def`` (or ``async``) itself, behind its decorators."""
        return self._positions[node].start.line - 1

    def line_after(self, node: cst.CSTNode) -> int:
        """The line (from 0) behind a statement."""
        return self._positions[node].end.line

    def indent(self, node: cst.CSTNode) -> bytes:
        return indent_of(self.lines[self.first_line(node)])

    def text(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node).strip()


def parse(source: bytes, where: str) -> Source:
    """Parse ``source`` with Python's own compiler and with LibCST.

    Raises:
        Refused: it is no Python that this interpreter compiles (the sentence gives the position), or its encoding
            is not a superset of ASCII.
    """
    tree = compile_source(source, where)
    bom, code = split_bom(source)
    text = _decode(code, encoding_of(source), where)
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise Refused(
            f"{where}, line {error.raw_line}: cannot be parsed ({error.message}); mend the file first"
        ) from None
    except Exception as error:
        raise Refused(f"{where}: cannot be parsed ({error}); mend the file first") from None
    return Source(code, bom, where, tree, MetadataWrapper(module, unsafe_skip_copy=True))


def compile_source(source: bytes, where: str) -> ast.Module:
    """What Python itself makes of ``source``.

    Raises:
        Refused: it does not compile.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, where)
            compile(source, where, "exec", dont_inherit=True)
    except SyntaxError as error:
        place = where if error.lineno is None else f"{where}, line {error.lineno}, column {error.offset or 1}"
        raise Refused(f"{place}: does not parse as Python {_PYTHON} ({error.msg}); {_MEND}") from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise Refused(f"{where}: does not parse as Python {_PYTHON} ({error}); {_MEND}") from None
    return tree


def _decode(code: bytes, encoding: str, where: str) -> str:
    try:
        text = code.decode(encoding)
    except (LookupError, UnicodeDecodeError) as error:
        raise Refused(f"{where}: cannot be decoded as {encoding} ({error}); mend the file first") from None
    counts_lines_alike = len(_NEWLINE.findall(text)) == len(split_lines(code + b"x")) - 1
    if not counts_lines_alike or not keeps_ascii(encoding):
        raise Refused(f"{where}: its encoding {encoding} does not keep ASCII as it is; save the file as UTF-8 first")
    return text
