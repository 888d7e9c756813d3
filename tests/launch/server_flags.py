"""The command line of a real SGLang, read from its source: which flags there are and what each takes."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """A flag of the server.

    Attributes:
        takes_value: whether a word must follow it.
        is_int: whether that word must be a whole number.
        choices: the words that are accepted; None where any is.
    """

    takes_value: bool
    is_int: bool
    choices: frozenset[str] | None

    def accepts(self, values: list[str]) -> bool:
        if not self.takes_value:
            return values == []
        if len(values) != 1 or (self.choices is not None and values[0] not in self.choices):
            return False
        return not self.is_int or values[0].lstrip("-").isdigit()


def read_flags(sources: Iterable[bytes]) -> dict[str, Flag]:
    """Flags added by ``add_argument``, and those that 0.5.14 and later make of the fields of ``ServerArgs``."""
    flags: dict[str, Flag] = {}
    for source in sources:
        module = ast.parse(source)
        flags.update(_of_fields(module))
        flags.update(_of_calls(module))
    return flags


def _of_calls(module: ast.Module) -> Iterator[tuple[str, Flag]]:
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=names, keywords=keywords):
                options = {keyword.arg: keyword.value for keyword in keywords}
                action = ast.unparse(options["action"]) if "action" in options else ""
                flag = Flag(
                    takes_value="rue" not in action and "onst" not in action,
                    is_int="type" in options and ast.unparse(options["type"]) == "int",
                    choices=_strings(options["choices"]) if isinstance(options.get("choices"), ast.List) else None,
                )
                yield from ((name, flag) for name in (_literal(name) for name in names) if name.startswith("--"))
            case _:
                pass


def _of_fields(module: ast.Module) -> Iterator[tuple[str, Flag]]:
    """Fields annotated ``A[type, Arg(…)]``, unless they say ``no_cli=True``."""
    for node in ast.walk(module):
        match node:
            case ast.AnnAssign(
                target=ast.Name(id=name),
                annotation=ast.Subscript(value=ast.Name(id="A"), slice=ast.Tuple(elts=[kind, *rest])),
            ):
                if "no_cli=True" in "".join(map(ast.unparse, rest)):
                    continue
                text = ast.unparse(kind)
                literals = _strings(kind) if "Literal[" in text else None
                flag = Flag(takes_value=text != "bool", is_int="int" in text, choices=literals)
                yield "--" + name.replace("_", "-"), flag
            case _:
                pass


def _literal(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case _:
            return ""


def _strings(node: ast.expr) -> frozenset[str]:
    constants = (inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant))
    return frozenset(value for value in constants if isinstance(value, str))
