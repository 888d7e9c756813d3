from pathlib import Path

import pytest

from probe_patch.config import Side, find_config

TRAIN = ["PROBE_PATCH_TRAIN_CONFIG", "PROBE_PATCH_CONFIG", "MSPROBE_CONFIG_PATH"]
ROLLOUT = ["PROBE_PATCH_ROLLOUT_CONFIG", "PROBE_PATCH_CONFIG", "MSPROBE_GENERATE_CONFIG"]


@pytest.mark.parametrize(("side", "variables"), [("train", TRAIN), ("rollout", ROLLOUT)])
def test_the_first_variable_that_is_set_wins_and_the_baked_path_comes_last(side: Side, variables: list[str]) -> None:
    environ = {name: f"/from/{name}" for name in {*TRAIN, *ROLLOUT}}
    for name in variables:
        assert find_config(environ, side, "/baked") == Path(f"/from/{name}")
        environ[name] = ""
    assert find_config(environ, side, "/baked") == Path("/baked")
    assert find_config(environ, side, None) is None
