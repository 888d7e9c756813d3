"""ModelRunner as SGLang published it, patched and really executed, with everything that it imports stubbed."""

import pytest

from probe_patch.patcher.request import Request
from probe_patch.patcher.rewrite import apply
from tests.harness.method_layers import method_layers
from tests.harness.model_runner import FILE_NAME, load_model_runner, outcome
from tests.harness.sglang_releases import Release

METHODS = {"init": "__init__", "forward": "forward"}


def patched(release: Release, config: str | None = None) -> bytes:
    return apply(release.source(), Request(config=config), FILE_NAME).source


@pytest.mark.parametrize("dump_on", [None, "0"])
def test_off_the_class_is_the_one_the_file_defines(patched_release: Release, dump_on: str | None) -> None:
    plain = load_model_runner(patched_release.source(), dump_on)
    loaded = load_model_runner(patched(patched_release), dump_on)

    assert loaded.probe is None
    assert not [name for name in loaded.imports if name.startswith("probe_patch")]
    assert sorted(loaded.imports) == sorted([*plain.imports, "os"])
    for method in METHODS.values():
        assert method_layers(loaded.runner, method) == (f"{FILE_NAME}:{method}",)


def test_on_both_methods_are_decorated_and_do_what_they_did(patched_release: Release) -> None:
    plain = load_model_runner(patched_release.source(), None)
    loaded = load_model_runner(patched(patched_release, "/c.json"), "1")

    assert loaded.probe is not None
    assert loaded.probe.config == "/c.json"
    assert set(loaded.probe.decorated) == set(METHODS)
    assert vars(loaded.runner).keys() == vars(plain.runner).keys()
    for block, method in METHODS.items():
        function = loaded.probe.decorated[block]
        assert (function.__qualname__, function.__code__.co_filename) == (f"ModelRunner.{method}", FILE_NAME)
        assert function.__code__.co_code == vars(plain.runner)[method].__code__.co_code

        loaded.probe.events.clear()
        assert outcome(vars(loaded.runner)[method]) == outcome(vars(plain.runner)[method])
        assert loaded.probe.events == [(block, "begins"), (block, "ends")]
