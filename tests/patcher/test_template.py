"""What goes into a template stays inside its literal."""

import ast

from hypothesis import given
from hypothesis import strategies as st

from probe_patch.patcher.template import render
from probe_patch.resources import data_folder


@given(config=st.text(st.characters(), max_size=40) | st.none(), phases=st.lists(st.text(max_size=8), max_size=3))
def test_values_cannot_break_out(config: str | None, phases: list[str]) -> None:
    code = render("slime/prelude.py", {"PHASES": tuple(phases), "CONFIG": config})
    assert code.isascii()
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    (made,) = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "_ProbePatch"]
    values = {keyword.arg: ast.literal_eval(keyword.value) for keyword in made.keywords}
    assert values == {"phases": tuple(phases), "config": config}


def test_every_template_is_python_without_an_encoding_cookie() -> None:
    templates = sorted((data_folder("templates") / "slime").glob("*.py"))
    assert [path.stem for path in templates] == ["init", "prelude", "rollout", "start", "stop"]
    for path in templates:
        text = path.read_text(encoding="ascii")
        assert "coding:" not in text and "coding=" not in text
        ast.parse(text + ("\ndef f(): ..." if path.stem == "rollout" else ""))
