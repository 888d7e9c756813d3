"""The files' form: a line per entry, whatever the pieces they are written in."""

import json
from pathlib import Path

import pytest

from probe_patch.dump_format import CONSTRUCT_FILE, STACK_FILE
from probe_patch.runtime import documents
from tests.runtime.configs import debugger_with
from tests.runtime.dumps import only_rank
from tests.runtime.toys import Mlp, ones


def written(folder: Path, micro_batches: int) -> Path:
    """The folder of a dump of all of a model's modules."""
    debugger, model = debugger_with(folder, level="L0"), Mlp()
    debugger.start(model)
    for _ in range(micro_batches):
        model(ones(2, 4)).sum().backward()
    debugger.stop()
    debugger.step()
    return only_rank(folder / "dump/step0")


@pytest.mark.parametrize("micro_batches", [0, 1, 3])
@pytest.mark.parametrize("at_a_time", [1, 4, 15])
def test_construct_json_is_the_same_in_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, micro_batches: int, at_a_time: int
) -> None:
    whole = written(tmp_path / "whole", micro_batches) / CONSTRUCT_FILE
    monkeypatch.setattr(documents, "_AT_A_TIME", at_a_time)
    assert (written(tmp_path / "pieces", micro_batches) / CONSTRUCT_FILE).read_text() == whole.read_text()


@pytest.mark.parametrize("micro_batches", [0, 1, 3])
@pytest.mark.parametrize("name", [CONSTRUCT_FILE, STACK_FILE])
def test_each_entry_has_a_line_as_json_writes_it(tmp_path: Path, name: str, micro_batches: int) -> None:
    text = (written(tmp_path, micro_batches) / name).read_text()
    members = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in json.loads(text).items()]
    assert bool(members) == bool(micro_batches)
    assert text == ("{\n" + ",\n".join(members) + "\n}\n" if members else "{}\n")
