"""Where the files to patch are: the layouts of a tree, the same for everything that is patched."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


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
        """The files of a checkout, a site-packages folder, a package, or a folder on the way from that to the file."""
        found = [file for package in self._packages_of(tree) for file in self.find_in_package(package)]
        return found or list(self._inside_package(tree))

    def find_in_package(self, package: Path) -> list[Path]:
        """The file of a package folder, or none."""
        return [package / file for file in self.files if (package / file).is_file()][:1]

    def unsupported(self, tree: Path) -> list[str]:
        """Of each package in ``tree`` that has nothing to patch: what it has instead, and why that is not patched."""
        return [
            f"{package / other}: {reason}"
            for package in self._packages_of(tree)
            if not self.find_in_package(package)
            for other, reason in self.instead.items()
            if (package / other).is_file()
        ]

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

    def _packages_of(self, tree: Path) -> list[Path]:
        """Where a package may be: below each root, or ``tree`` itself."""
        return [*(tree / root / package for root in self.roots for package in self.packages), tree]

    def _inside_package(self, folder: Path) -> Iterator[Path]:
        name = folder.resolve().name
        for file in self.files:
            for depth in range(1, len(file.parts)):
                if file.parts[depth - 1] == name and (path := folder.joinpath(*file.parts[depth:])).is_file():
                    yield path
