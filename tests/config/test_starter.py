import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_patch.config import parse_config, starter_config
from probe_patch.errors import ConfigError


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0$")))
def test_a_starter_config_is_served_in_silence_wherever_it_dumps(name: str) -> None:
    loaded = parse_config(starter_config(f"/{name}"), "config.json")
    assert loaded.config.dump_path == f"/{name}"
    assert loaded.config.step == (0,)
    assert loaded.warnings == ()


@given(st.text(), st.text(), st.sampled_from(["~", "$"]))
def test_no_path_with_a_nul_or_a_shells_first_character_is_served(before: str, after: str, first: str) -> None:
    for dump_path in (f"/{before}\0{after}", first + after):
        with pytest.raises(ConfigError, match=r"^config\.json: dump_path"):
            parse_config(starter_config(dump_path), "config.json")
