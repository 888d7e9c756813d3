"""What goes into a template stays inside its literal."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_patch.patcher.template import Identifier, render
from probe_patch.resources import data_folder


@given(
    config=st.text(st.characters(), max_size=40) | st.none(),
    phases=st.lists(st.text(max_size=8), max_size=3),
    debugger=st.text(max_size=8),
)
def test_values_cannot_break_out(config: str | None, phases: list[str], debugger: str) -> None:
    code = render("slime/prelude.py", {"PHASES": tuple(phases), "CONFIG": config, "DEBUGGER": debugger})
    assert code.isascii()
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    (made,) = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "_ProbePatch"]
    values = {keyword.arg: ast.literal_eval(keyword.value) for keyword in made.keywords}
    assert values == {"phases": tuple(phases), "config": config, "debugger": debugger}


DECORATORS = {"slime/rollout.py", "sglang/init.py", "sglang/forward.py"}
TEMPLATES = {
    "gate.py",
    *(f"slime/{name}.py" for name in ("init", "prelude", "rollout", "start", "stop")),
    *(f"sglang/{name}.py" for name in ("prelude", "init", "forward")),
}


def test_every_template_is_python_without_an_encoding_cookie() -> None:
    folder = data_folder("templates")
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")} == TEMPLATES
    for name in TEMPLATES:
        text = (folder / name).read_text(encoding="ascii")
        assert "coding:" not in text and "coding=" not in text
        ast.parse(text + ("\ndef f(): ..." if name in DECORATORS else ""))


def test_only_the_gate_reads_the_variable() -> None:
    folder = data_folder("templates")
    assert {name for name in TEMPLATES if "DUMP_ON" in (folder / name).read_text(encoding="ascii")} == {"gate.py"}


def test_a_bare_name_is_a_name() -> None:
    assert "from probe_patch.runtime.slime import Probe" in render("gate.py", {"RUNTIME": Identifier("slime")})


@pytest.mark.parametrize("name", ["", "a b", "a.b", "1a", "a\n", "import", "ü", "a;b", "__import__('os')"])
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no Python name"):
        Identifier(name)
