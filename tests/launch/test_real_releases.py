"""What we print, held against the source of real releases: those on either side of each change."""

from pathlib import Path

import pytest

from probe_patch.launch.advice import advice, parse_version, settings_of
from probe_patch.launch.native import is_native
from probe_patch.launch.source import read_fields
from probe_patch.launch.version import find_version
from tests.harness.sglang_releases import release as named_release
from tests.harness.wheels import names_in_wheel, read_from_wheel
from tests.launch.server_flags import read_flags

VERSIONS = """
    0.2.0 0.2.6 0.2.7 0.2.13 0.3.5.post1 0.3.5.post2 0.3.6.post3 0.4.0 0.4.1.post3 0.4.1.post4 0.4.3.post2
    0.4.3.post3 0.4.4 0.4.6.post5 0.4.7 0.4.8.post1 0.4.9 0.4.9.post2 0.4.9.post3 0.4.10.post1 0.4.10.post2 0.5.1
    0.5.3.post1 0.5.3.post2 0.5.5.post3 0.5.6 0.5.6.post2 0.5.7 0.5.9 0.5.10 0.5.10.post1 0.5.11 0.5.13.post1
    0.5.14 0.5.20 0.5.23
""".split()  # noqa: SIM905
_READ = ("srt/server_args.py", "srt/arg_groups/", "version.py", "srt/environ.py", "http_server.py")

# What slime's add_sglang_arguments has left out at one time or another, from 2025-06-18 to 2026-08-20.
SKIPPED_BY_SLIME = {
    "model_path",
    "config",
    "dtype",
    "trust_remote_code",
    "random_seed",
    "enable_memory_saver",
    "tp_size",
    "port",
    "nnodes",
    "node_rank",
    "dist_init_addr",
    "gpu_id_step",
    "base_gpu_id",
    "nccl_port",
    "other_ports",
    "skip_warmup",
    "skip_server_warmup",
    "enable_return_routed_experts",
}


@pytest.fixture(scope="module", params=VERSIONS)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A version, and its package folder with the few files that are looked at."""
    version: str = request.param
    wheel = named_release(version).wheel
    folder = tmp_path_factory.mktemp(version)
    for member in sorted(names_in_wheel(wheel)):
        if member.startswith("sglang/") and member.endswith(".py") and any(part in member for part in _READ):
            (folder / member).parent.mkdir(parents=True, exist_ok=True)
            (folder / member).write_bytes(read_from_wheel(wheel, member))
    return version, folder / "sglang"


def test_its_version_is_found(release: tuple[str, Path]) -> None:
    version, package = release
    assert find_version(package) == version


def test_its_source_asks_for_the_same_as_its_number(release: tuple[str, Path]) -> None:
    version, package = release
    fields = read_fields(package)
    assert fields is not None
    assert settings_of(parse_version(version), fields) == settings_of(parse_version(version))
    assert is_native(version, fields) == is_native(version, None)


@pytest.mark.parametrize("modes", [{"extend"}, {"decode"}, {"all"}], ids=str)
def test_it_has_every_flag_that_is_printed_and_accepts_its_value(release: tuple[str, Path], modes: set[str]) -> None:
    version, package = release
    sources = [package / "srt/server_args.py", *sorted((package / "srt/arg_groups").rglob("*.py"))]
    flags = read_flags(path.read_bytes() for path in sources)
    printed = advice(version, "sglang", frozenset(modes))
    for flag, *values in (each.words for each in printed if each.words):
        assert flag in flags
        assert flags[flag].accepts(values)
    assert {each.avoid for each in printed if each.avoid} <= flags.keys()


def test_slime_takes_every_flag_that_is_printed_for_it(release: tuple[str, Path]) -> None:
    version, _ = release
    flags = [each.words[0] for each in advice(version, "slime", frozenset({"all"})) if each.words]
    assert flags
    for flag in flags:
        assert flag.removeprefix("--sglang-").replace("-", "_") not in SKIPPED_BY_SLIME


def test_health_probes_run_a_forward_unless_the_variable_stops_them(release: tuple[str, Path]) -> None:
    version, package = release
    server = "".join(path.read_text() for path in package.rglob("http_server.py"))
    runs_forward = '@app.get("/health")\n@app.get("/health_generate")' in server
    can_be_stopped = "not envs.SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION.get()" in server
    probe = [each for each in advice(version, "sglang") if each.concern == "health probe"]
    assert bool(probe) == runs_forward
    assert any(each.environment for each in probe) == can_be_stopped


def test_which_chunk_sizes_switch_chunking_off(release: tuple[str, Path]) -> None:
    version, package = release
    source = (package / "srt/server_args.py").read_text()
    given = [each.words for each in advice(version, "sglang") if each.concern == "chunked prefill"]
    divides_none = "self.chunked_prefill_size = None" in source and "self.chunked_prefill_size //= 4" in source
    on_by_default = "chunked_prefill_size" in source and "chunked_prefill_size: Optional[int] = None" not in source
    if divides_none:
        assert given == [("--chunked-prefill-size", "1048576")]
    elif on_by_default or parse_version(version) >= parse_version("0.4.0"):
        assert given == [("--chunked-prefill-size", "-1")]
    else:
        assert given in ([], [()])
