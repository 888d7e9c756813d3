"""Where the data folders that travel with the package are: beside it in a checkout, inside it in a wheel."""

from pathlib import Path


def data_folder(name: str) -> Path:
    """The folder ``name`` (``templates`` or ``fixtures``).

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    package = Path(__file__).parent
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"probe-patch was installed without its {name} folder; reinstall it")
