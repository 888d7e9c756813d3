from hypothesis import given
from hypothesis import strategies as st

from probe_patch.config import parse_config, starter_config


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_starter_config_is_served_in_silence_wherever_it_dumps(dump_path: str) -> None:
    loaded = parse_config(starter_config(dump_path), "config.json")
    assert loaded.config.dump_path == dump_path
    assert loaded.config.step == (0,)
    assert loaded.warnings == ()
