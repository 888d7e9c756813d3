"""The version of an SGLang package folder, wherever that version of it says so."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from probe_patch.launch.version import find_version

SCM = (
    "__all__ = ['__version__']\nTYPE_CHECKING = False\nversion: str\n"
    "__version__ = version = '0.5.9'\n__version_tuple__ = version_tuple = (0, 5, 9)\n"
)
FALLBACK = "try:\n    from sglang._version import __version__\nexcept ImportError:\n    __version__ = '0.0.0.dev0'\n"
METADATA = "Metadata-Version: 2.4\nName: sglang\nVersion: 0.4.6.post5\nRequires-Dist: x\n\nVersion: 9.9\n"

FILES = [
    ({"sglang/_version.py": SCM, "sglang/version.py": FALLBACK}, "0.5.9"),
    ({"sglang/_version.py": "__version__: str = '0.5.10.dev123+gabcdef'\n"}, "0.5.10.dev123+gabcdef"),
    ({"sglang/version.py": '__version__ = "0.4.6.post5"\n'}, "0.4.6.post5"),
    ({"sglang/version.py": '__version__ = "v0.5.1"\r\n'}, "0.5.1"),
    ({"sglang/_version.py": SCM, "sglang-0.4.6.post5.dist-info/METADATA": METADATA}, "0.5.9"),
    ({"sglang/version.py": FALLBACK, "sglang-0.4.6.post5.dist-info/METADATA": METADATA}, "0.4.6.post5"),
    ({"sglang.egg-info/PKG-INFO": METADATA}, "0.4.6.post5"),
    ({"sglang/version.py": "def (", "sglang-1.dist-info/METADATA": METADATA}, "0.4.6.post5"),
    ({"sglang/version.py": "__version__ = read()\n"}, None),
    ({"sglang/version.py": "__version__ = 'main'\n"}, None),
    ({"sglang/version.py": "\0"}, None),
    ({"sglang_router-0.2.dist-info/METADATA": METADATA.replace("sglang", "sglang-router")}, None),
    ({"sglang-1.dist-info/METADATA": "Name: sglang\n"}, None),
    ({}, None),
]


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (root / "sglang").mkdir(exist_ok=True)
    return root / "sglang"


@pytest.mark.parametrize(("files", "version"), FILES)
def test_what_the_files_say(tmp_path: Path, files: dict[str, str], version: str | None) -> None:
    assert find_version(lay_out(tmp_path, files)) == version


def test_nothing_is_executed(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    code = f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n__version__ = '0.5.9'\n"
    package = lay_out(tmp_path, {"sglang/__init__.py": code, "sglang/version.py": code, "sglang/_version.py": code})
    assert find_version(package) == "0.5.9"
    assert not ran.exists()


EDITABLE = [
    ({"url": "file://{checkout}", "dir_info": {"editable": True}}, "0.4.6.post5"),
    ({"url": "file://{checkout}", "dir_info": {}}, None),
    ({"url": "file://{checkout}/other", "dir_info": {"editable": True}}, None),
    ({"url": "https://example.org/sglang.whl"}, None),
    ([], None),
]


@pytest.mark.parametrize(("direct_url", "version"), EDITABLE)
def test_an_editable_install_is_told_by_its_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direct_url: object, version: str | None
) -> None:
    checkout = tmp_path / "a checkout"
    package = lay_out(checkout / "python", {"sglang/__init__.py": ""})
    text = json.dumps(direct_url).replace("{checkout}", str(checkout).replace(" ", "%20"))
    site = tmp_path / "site-packages"
    lay_out(site, {"sglang-1.dist-info/METADATA": METADATA, "sglang-1.dist-info/direct_url.json": text})
    monkeypatch.setattr(sys, "path", [str(site)])
    assert find_version(package) == version


def git(folder: Path, *words: str) -> None:
    who = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "tag.gpgsign=false",
    )
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def test_a_checkout_without_anything_else_is_told_by_its_tags(tmp_path: Path) -> None:
    package = lay_out(tmp_path / "python", {"sglang/__init__.py": ""})
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "one")
    assert find_version(package) is None
    git(tmp_path, "tag", "v0.5.10.post1")
    git(tmp_path, "tag", "gateway-v9")
    assert find_version(package) == "0.5.10.post1"
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "two")
    found = find_version(package)
    assert found is not None
    assert found.startswith("0.5.10.post1+1.g")


def test_the_tags_of_another_repository_around_it_are_not_its_own(tmp_path: Path) -> None:
    package = lay_out(tmp_path / "site-packages", {"sglang/__init__.py": ""})
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "one")
    git(tmp_path, "tag", "v0.3.1")
    assert find_version(package) is None
