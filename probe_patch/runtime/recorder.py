"""The recorder of one dump, as its config asks for it."""

from pathlib import Path

from probe_patch.runtime.capture.asked import Asked
from probe_patch.runtime.capture.records import Recorder
from probe_patch.runtime.problems import Problems
from probe_patch.runtime.tensor_files import AtOnce, AtStop, TensorFiles


def recorder_into(folder: Path, asked: Asked, problems: Problems) -> Recorder:
    """A recorder whose files, if it saves any, go below the dump's folder."""
    return Recorder(asked.contents(problems), problems, asked.slices, _files(folder, asked, problems))


def _files(folder: Path, asked: Asked, problems: Problems) -> TensorFiles | None:
    if not asked.saved:
        return None
    at_once = AtOnce(folder, problems)
    return TensorFiles(AtStop(at_once) if asked.held else at_once, asked.saved, asked.tensor_mib, problems)
