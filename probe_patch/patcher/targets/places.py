"""Where the files to patch are: the layouts of a tree, the same for everything that is patched."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from probe_patch.errors import Refused, SystemFailed


@dataclass(frozen=True)
class Unsupported:
    """A package folder, symbolic links resolved, and why there is nothing in it to patch."""

    package: Path
    reason: str


@dataclass(frozen=True)
class Places:
    """Where one kind of file is. All paths in a package are relative to its folder.

    Attributes:
        packages: names of the packages that hold one.
        roots: folders of a checkout in which the package may stand; ``""`` is the checkout itself, or site-packages.
        files: where in the package it is; the first that exists is the one that is imported.
        beside: what else may be in a package that has the file, and what is to be said of it.
        instead: what may be in a package that has not, and why that is not patched.
    """

    packages: tuple[str, ...]
    roots: tuple[str, ...]
    files: tuple[PurePosixPath, ...]
    beside: Mapping[PurePosixPath, str]
    instead: Mapping[PurePosixPath, str]

    def find(self, tree: Path) -> list[Path]:
        """The files of a checkout, a site-packages folder, a package, or a folder on the way from that to the file.

        Raises:
            SystemFailed: a symbolic link that leads nowhere stands in the place of one.
            Refused: something else that is no file does.
        """
        found = [file for package in self._packages_of(tree) for file in self.find_in_package(package)]
        return found or list(self._inside_package(tree))

    def find_in_package(self, package: Path) -> list[Path]:
        """The file of a package folder, or none.

        Raises:
            SystemFailed, Refused: as for ``find``.
        """
        return [package / file for file in self.files if _is_file(package / file)][:1]

    def unsupported(self, tree: Path) -> list[Unsupported]:
        """The packages in ``tree`` that have nothing to patch: what they have instead, or that they have nothing."""
        found = []
        for package in self._packages_of(tree):
            if not self.find_in_package(package):
                instead = [(other, why) for other, why in self.instead.items() if (package / other).is_file()]
                found += [Unsupported(package.resolve(), f"{package / other}: {why}") for other, why in instead]
                if not instead and self._is_package(package):
                    found.append(Unsupported(package.resolve(), self._hollow(package)))
        return found

    def notes(self, path: Path) -> tuple[str, ...]:
        """What is to be said about the surroundings of a file that was found."""
        package = self.package_of(path)
        if package is None:
            return ()
        return tuple(note for other, note in self.beside.items() if (package / other).is_file())

    def package_of(self, path: Path) -> Path | None:
        """The package folder that a file stands in; None where it stands alone."""
        for file in self.files:
            if path.match(str(file)):
                return path.parents[len(file.parts) - 1]
        return None

    def _is_package(self, folder: Path) -> bool:
        """Whether a folder is one of the packages, and not a checkout of the same name."""
        if folder.resolve().name not in self.packages:
            return False
        return (folder / "__init__.py").is_file() or any((folder / file.parts[0]).is_dir() for file in self.files)

    def _hollow(self, package: Path) -> str:
        return f"{package}: it holds no {self.files[0]}, so it is broken or only a part of {package.resolve().name}"

    def _packages_of(self, tree: Path) -> list[Path]:
        """Where a package may be: below each root, or ``tree`` itself."""
        return [*(tree / root / package for root in self.roots for package in self.packages), tree]

    def _inside_package(self, folder: Path) -> Iterator[Path]:
        name = folder.resolve().name
        for file in self.files:
            for depth in range(1, len(file.parts)):
                if file.parts[depth - 1] == name and _is_file(path := folder.joinpath(*file.parts[depth:])):
                    yield path


def _is_file(path: Path) -> bool:
    """Whether a file to be patched is there; what is no file must not be passed over in silence."""
    if path.is_file():
        return True
    if path.exists():
        what = "a folder" if path.is_dir() else "no regular file"
        raise Refused(f"{path}: is {what}, and a Python file must be there; install the package anew")
    if path.is_symlink():
        raise SystemFailed(f"{path}: is a symbolic link that leads nowhere; mend it, or install the package anew")
    return False
