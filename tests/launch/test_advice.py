"""Every flag in every release, against a table written out release by release and not read from ours."""

import pytest

from probe_patch.errors import Refused, WrongUsage
from probe_patch.launch.advice import Via, advice
from probe_patch.launch.native import native_sentence
from tests.harness.sglang_releases import releases

RELEASES = tuple(release.version for release in releases(everything=True))
LAST = RELEASES[-1]
ALL = frozenset({"all"})

# What to pass (or to set, NAME=value; or not to pass, "no --flag"): the first and the last release with it.
IN_RELEASES = [
    ("--disable-cuda-graph", "0.2.0", "0.5.13.post1"),
    ("--cuda-graph-backend-decode disabled", "0.5.14", LAST),
    ("--cuda-graph-backend-prefill disabled", "0.5.14", LAST),
    ("--disable-piecewise-cuda-graph", "0.5.10", "0.5.13.post1"),
    ("no --enable-piecewise-cuda-graph", "0.5.3.post2", "0.5.9"),
    ("no --enforce-piecewise-cuda-graph", "0.5.10", "0.5.13.post1"),
    ("no --cuda-graph-config", "0.5.14", LAST),
    ("--skip-server-warmup", "0.4.9", LAST),
    ("no --warmups", "0.4.3.post3", LAST),
    ("--disable-radix-cache", "0.2.0", LAST),
    ("no --chunked-prefill-size", "0.2.7", "0.2.12"),
    ("--chunked-prefill-size -1", "0.2.13", "0.3.5.post1"),
    ("--chunked-prefill-size 1048576", "0.3.5.post2", "0.3.6.post3"),
    ("--chunked-prefill-size -1", "0.4.0", LAST),
    ("SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION=0", "0.5.6", LAST),
    ("no --enable-torch-compile", "0.2.0", LAST),
    ("no --enable-two-batch-overlap", "0.4.7", LAST),
    ("no --enable-pdmux", "0.4.9.post3", LAST),
    ("no --enable-dynamic-chunking", "0.5.7", LAST),
    ("no --speculative-algorithm", "0.4.1.post4", LAST),
    ("no --msprobe-dump-config", "0.5.11", LAST),
]
# A part of a reason, and the first and the last release in which it is given.
SAID_IN_RELEASES = [
    ("warm-up request cannot be left out", "0.2.0", "0.4.8.post1"),
    ("which this version cannot be told not to do", "0.4.10.post2", "0.5.5.post3"),
    ("not every server of this version survives a -1", "0.3.5.post2", "0.3.6.post3"),
    ("if the server runs out of memory", "0.4.0", "0.4.10.post2"),
    ("with a --page-size above 1", "0.4.4", "0.4.10.post2"),
    ("says that a kernel needs chunks", "0.5.1", LAST),
    ("a decode server no extend forward", "0.4.4.post2", LAST),
]


def said(version: str | None, via: Via = "sglang", modes: frozenset[str] = ALL, level: str = "L0") -> list[str]:
    """The advice, in the words of ``IN_RELEASES``."""
    return [
        " ".join(each.words)
        or (f"no {each.avoid}" if each.avoid else "=".join(each.environment) if each.environment else each.concern)
        for each in advice(version, via, modes, level)
    ]


def between(version: str, first: str, last: str) -> bool:
    return RELEASES.index(first) <= RELEASES.index(version) <= RELEASES.index(last)


@pytest.mark.parametrize("version", RELEASES)
def test_each_release_gets_what_it_has_and_nothing_else(version: str) -> None:
    expected = {what for what, first, last in IN_RELEASES if between(version, first, last)}
    concerns_without_words = {"server warm-up", "health probe", "PD disaggregation"}
    assert {what for what in said(version) if what not in concerns_without_words} == expected


@pytest.mark.parametrize("version", RELEASES)
def test_reasons_hold_for_the_release(version: str) -> None:
    reasons = " ".join(each.reason for each in advice(version, "sglang", ALL))
    given = {part for part, _, _ in SAID_IN_RELEASES if part in reasons}
    assert given == {part for part, first, last in SAID_IN_RELEASES if between(version, first, last)}


@pytest.mark.parametrize("version", RELEASES)
def test_slime_puts_its_prefix_and_forces_the_warm_up_itself(version: str) -> None:
    alone = [word for each in advice(version, "sglang", ALL) for word in each.words]
    through_slime = [word for each in advice(version, "slime", ALL) for word in each.words]
    assert through_slime == [word.replace("--", "--sglang-") for word in alone if word != "--skip-server-warmup"]


MODES = [
    ({"extend"}, {"--disable-cuda-graph", "--disable-piecewise-cuda-graph", "--disable-radix-cache"}),
    ({"decode"}, {"--disable-cuda-graph", "no --enable-torch-compile", "no --speculative-algorithm"}),
    ({"extend", "decode"}, {"--disable-radix-cache", "no --speculative-algorithm"}),
    ({"all"}, {"--disable-radix-cache", "no --speculative-algorithm"}),
]


@pytest.mark.parametrize(("modes", "among"), MODES, ids=lambda names: " ".join(sorted(names)))
def test_only_what_bears_on_the_modes(modes: set[str], among: set[str]) -> None:
    words = set(said("0.5.10", modes=frozenset(modes)))
    assert among <= words
    assert ("--disable-radix-cache" in words) == (modes != {"decode"})
    assert ("no --enable-torch-compile" in words) == (modes != {"extend"})


@pytest.mark.parametrize(
    ("level", "set_"), [("L0", False), ("L1", True), ("L2", False), ("mix", True), ("debug", False)]
)
@pytest.mark.parametrize("version", [RELEASES[0], LAST])
def test_dynamo_is_off_where_operators_are_recorded(version: str, level: str, set_: bool) -> None:
    assert ("TORCHDYNAMO_DISABLE=1" in said(version, level=level)) == set_


@pytest.mark.parametrize("version", [None, "0.5.24", "0.6.0", "1.0"])
def test_what_is_not_known_counts_as_the_newest(version: str | None) -> None:
    assert said(version) == said(LAST)


OTHER_NUMBERS = [
    ("0.5.9+cu129", "0.5.9"),
    ("0.5.0rc0", "0.4.10.post2"),
    ("0.5.10.post2", "0.5.10.post1"),
    ("v0.5.9", "0.5.9"),
]


@pytest.mark.parametrize(("version", "as_release"), OTHER_NUMBERS)
def test_other_numbers(version: str, as_release: str) -> None:
    assert said(version) == said(as_release)


DEVELOPMENT = [
    ("0.5.10.dev123+gabc", {"disable_cuda_graph", "disable_piecewise_cuda_graph"}, "--disable-piecewise-cuda-graph"),
    ("0.5.10.dev1+gabc", {"disable_cuda_graph", "enable_piecewise_cuda_graph"}, "no --enable-piecewise-cuda-graph"),
    ("0.5.13.post2.dev7", {"disable_cuda_graph", "cuda_graph_config"}, "--cuda-graph-backend-decode disabled"),
    (None, {"disable_cuda_graph"}, "--disable-cuda-graph"),
    (
        "0.0.0.dev1+gdce8b0606",
        {"disable_cuda_graph", "enforce_piecewise_cuda_graph"},
        "no --enforce-piecewise-cuda-graph",
    ),
    ("0.0.0.dev0", {"cuda_graph_config"}, "--cuda-graph-backend-prefill disabled"),
    ("0.1.dev7+gabc", {"skip_server_warmup"}, "--skip-server-warmup"),
    ("0.4.9.dev3", {"skip_server_warmup"}, "--skip-server-warmup"),
]


@pytest.mark.parametrize(("version", "fields", "what"), DEVELOPMENT)
def test_the_source_decides_for_a_development_build(version: str | None, fields: set[str], what: str) -> None:
    by_source = advice(version, "sglang", ALL, fields=frozenset(fields))
    words = [" ".join(each.words) or f"no {each.avoid}" for each in by_source]
    assert what in words
    assert "--disable-radix-cache" not in words


def test_no_warm_up_flag_in_the_source_means_that_it_cannot_be_skipped() -> None:
    by_source = advice("0.4.9", "sglang", ALL, fields=frozenset({"disable_radix_cache"}))
    assert [each.words for each in by_source if each.concern == "server warm-up"] == [()]


def test_what_is_no_version_or_too_old_is_said() -> None:
    with pytest.raises(WrongUsage, match='"latest" is no version of SGLang; give one such as'):
        advice("latest", "sglang")
    with pytest.raises(Refused, match=r"SGLang 0\.1\.20 is older than 0\.2\.0"):
        advice("0.1.20", "sglang")
    with pytest.raises(Refused, match="name its TREE to have its source read"):
        advice("0.0.0.dev1", "sglang")


NATIVE = [
    ("0.5.11", "--disable-cuda-graph --disable-piecewise-cuda-graph --skip-server-warmup --disable-radix-cache"),
    ("0.5.11", "--sglang-disable-cuda-graph --sglang-disable-piecewise-cuda-graph --sglang-disable-radix-cache"),
    ("0.5.10.dev9+gabc", "--disable-piecewise-cuda-graph"),
    ("0.5.15", "--cuda-graph-backend-decode disabled --cuda-graph-backend-prefill disabled"),
    ("0.5.15", "--sglang-cuda-graph-backend-decode disabled --sglang-cuda-graph-backend-prefill disabled"),
    (None, "--sglang-cuda-graph-backend-prefill disabled"),
]


@pytest.mark.parametrize(("version", "words"), NATIVE)
def test_a_native_version_is_told_its_flags_alone_and_through_slime(version: str | None, words: str) -> None:
    sentence = native_sentence(version)
    assert words in sentence
    assert "DUMP_ON=1" in sentence
    assert "--msprobe-dump-config" in sentence


IMPOSSIBLE = [
    (None, "--cuda-graph-backend-prefill disabled"),
    (frozenset({"msprobe_dump_config", "disable_piecewise_cuda_graph"}), "--disable-piecewise-cuda-graph"),
    (frozenset({"msprobe_dump_config", "cuda_graph_config"}), "--cuda-graph-backend-decode disabled"),
]


@pytest.mark.parametrize("version", ["0.0.0.dev1+gdce8b0606", "0.0.0.dev0"])
@pytest.mark.parametrize(("fields", "words"), IMPOSSIBLE)
def test_a_native_version_that_cannot_be_true_counts_as_unknown(
    version: str, fields: frozenset[str] | None, words: str
) -> None:
    sentence = native_sentence(version, fields=fields)
    assert sentence.startswith(f"SGLang 0.5.11 or later (it calls itself {version}) needs no patch")
    assert words in sentence
