"""Which fields the ``ServerArgs`` of an SGLang has, read from its source."""

import ast
from collections.abc import Iterator
from pathlib import Path

_SERVER_ARGS = "srt/server_args.py"
_ARGUMENT_GROUPS = "srt/arg_groups"  # where the fields live from 0.5.20 on


def read_fields(package: Path) -> frozenset[str] | None:
    """The annotated fields of the classes in SGLang's argument modules; None where they cannot be read.

    Args:
        package: the folder ``sglang`` itself.
    """
    main = package / _SERVER_ARGS
    try:
        paths = [main, *sorted((package / _ARGUMENT_GROUPS).rglob("*.py"))]
        fields = frozenset(name for path in paths for name in _fields_in(path.read_bytes()))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    return fields or None


def _fields_in(source: bytes) -> Iterator[str]:
    for definition in ast.parse(source).body:
        if isinstance(definition, ast.ClassDef):
            for statement in definition.body:
                match statement:
                    case ast.AnnAssign(target=ast.Name(id=name)):
                        yield name
                    case _:
                        pass
