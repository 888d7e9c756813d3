"""Which version of SGLang a package folder holds, found by reading and never by importing.

SGLang says its version in four places, and no version says it in all of them:

1. ``sglang/_version.py``, written by setuptools_scm when a wheel is built (0.5.7 and later);
2. ``sglang/version.py``, a literal (0.2.0 to 0.5.6.post2);
3. the metadata of the installed distribution, beside the package or, for an editable install, naming its checkout;
4. the tags of the checkout that the package stands in.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

_VERSION_NAMES = ("__version__", "version")
_GIT_TIMEOUT_S = 10


def find_version(package: Path) -> str | None:
    """The version of SGLang in the package folder ``package``, as PEP 440 writes it; None where nothing says it.

    Args:
        package: the folder ``sglang`` itself. Metadata of an editable install of it is looked for on ``sys.path``.
    """
    return (
        _assigned_in(package / "_version.py")
        or _assigned_in(package / "version.py")
        or _in_metadata(package)
        or _from_tags(package)
    )


def _assigned_in(path: Path) -> str | None:
    """The string that a file assigns to ``__version__`` or ``version``, where it is written out."""
    try:
        module = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    for statement in module.body:
        match statement:
            case ast.Assign(targets=targets, value=ast.Constant(value=str(text))):
                pass
            case ast.AnnAssign(target=target, value=ast.Constant(value=str(text))):
                targets = [target]
            case _:
                continue
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        if names & set(_VERSION_NAMES) and (version := _normal(text)):
            return version
    return None


def _in_metadata(package: Path) -> str | None:
    package = package.absolute()
    for metadata in _distributions(package.parent):
        if version := _read_metadata(metadata):
            return version
    for folder in map(Path, filter(None, sys.path)):
        for metadata in _distributions(folder):
            if _is_editable_install_of(metadata.parent, package) and (version := _read_metadata(metadata)):
                return version
    return None


def _distributions(folder: Path) -> Iterator[Path]:
    """Metadata files of distributions named sglang in ``folder``."""
    for pattern in ("*.dist-info/METADATA", "*.egg-info/PKG-INFO"):
        try:
            found = sorted(folder.glob(pattern))
        except OSError:
            continue
        for path in found:
            if canonicalize_name(path.parent.name.partition("-")[0].removesuffix(".egg")) == "sglang":
                yield path


def _read_metadata(path: Path) -> str | None:
    try:
        headers = HeaderParser().parsestr(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    name, version = headers.get("Name"), headers.get("Version")
    return _normal(version) if version and name and canonicalize_name(name) == "sglang" else None


def _is_editable_install_of(dist_info: Path, package: Path) -> bool:
    """Whether PEP 610's ``direct_url.json`` names, as an editable install, a checkout that ``package`` is in."""
    try:
        document = json.loads((dist_info / "direct_url.json").read_bytes())
        checkout = Path(unquote(urlsplit(document["url"]).path)).resolve()
        return document["dir_info"]["editable"] is True and package.resolve().is_relative_to(checkout)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _from_tags(package: Path) -> str | None:
    """What ``git describe`` says: ``v0.5.9-12-gabc1234`` becomes ``0.5.9+12.gabc1234``.

    Only of SGLang's own checkout, where the package is ``python/sglang``: tags of a repository around it are not its.
    """
    top = _git(package, "rev-parse", "--show-toplevel")
    if top is None or Path(top, "python", "sglang").resolve() != package.resolve():
        return None
    described = _git(package, "describe", "--tags", "--match", "v[0-9]*")
    if described is None:
        return None
    tag, *after = described.removeprefix("v").rsplit("-", 2)
    return _normal("+".join([tag, ".".join(after)]) if after else tag)


def _git(folder: Path, *words: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _normal(text: str) -> str | None:
    try:
        return str(Version(text))
    except InvalidVersion:
        return None
