"""Operators that torch does not bring itself: what they are called, and which of them are recorded."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from probe_patch.runtime.capture.functions.custom_operators import _TORCHS_OWN
from tests.runtime.functions.recording import recorded
from tests.runtime.toys import ones

X = ones(2)


def overwrites(x: Tensor) -> None:
    x.fill_(9)


@pytest.fixture(autouse=True, scope="module")
def operators() -> Iterator[None]:
    """Of a kernel library, of NPUs, and one in Python, which calls functions of torch."""
    libraries: list[Any] = []
    for namespace, signature in [
        ("sgl_kernel", "rmsnorm(Tensor x, float eps=0.5) -> Tensor"),
        ("sgl_kernel", "fill_(Tensor(a!) x) -> ()"),
        ("npu", "npu_rms_norm(Tensor x) -> Tensor"),
    ]:
        library: Any = torch.library.Library(namespace, "FRAGMENT")  # type: ignore[no-untyped-call]
        library.define(signature)
        libraries.append(library)
    libraries[0].impl("rmsnorm", lambda x, eps=0.5: x.mul(eps), "CompositeExplicitAutograd")
    libraries[1].impl("fill_", overwrites, "CompositeExplicitAutograd")
    libraries[2].impl("npu_rms_norm", lambda x: x.mul(3), "CompositeExplicitAutograd")
    yield
    for library in libraries:
        library._destroy()


@torch.library.custom_op("probe_patch_tests::halved", mutates_args=())
def halved(x: Tensor) -> Tensor:
    return torch.mul(x, 0.5)


NAMED: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "an operator": (lambda: torch.ops.sgl_kernel.rmsnorm(X), ["sgl_kernel.rmsnorm"]),
    "an overload": (lambda: torch.ops.sgl_kernel.rmsnorm.default(X, 2.0), ["sgl_kernel.rmsnorm"]),
    "of NPUs": (lambda: torch.ops.npu.npu_rms_norm(X), ["NPU.npu_rms_norm"]),
    "defined in Python": (lambda: halved(X), ["probe_patch_tests.halved"]),
    "defined in Python, by its namespace": (
        lambda: torch.ops.probe_patch_tests.halved(X),
        ["probe_patch_tests.halved"],
    ),
    "torch's own": (lambda: torch.ops.aten.exp(X), []),
}


@pytest.mark.parametrize("example", NAMED)
def test_an_operator_is_named_after_its_namespace(example: str) -> None:
    work, names = NAMED[example]
    dump = recorded(work)
    assert dump.names() == names
    assert dump.problems == ()


def test_its_values_are_recorded() -> None:
    data = recorded(lambda: torch.ops.sgl_kernel.rmsnorm(X, eps=2.0)).data
    entry = data["sgl_kernel.rmsnorm.0.forward"]
    assert (entry["input_args"][0]["Max"], entry["input_kwargs"]["eps"]["value"]) == (1.0, 2.0)
    assert entry["output"][0]["Max"] == 2.0


def test_one_that_writes_into_its_argument_has_what_was_there_before() -> None:
    data = recorded(lambda: torch.ops.sgl_kernel.fill_(X.clone())).data
    assert data["sgl_kernel.fill_.0.forward"]["input_args"][0]["Max"] == 1.0


def calls_all() -> None:
    torch.ops.sgl_kernel.rmsnorm(X)
    halved(X)
    torch.ops.npu.npu_rms_norm(X)


@pytest.mark.parametrize(
    ("namespaces", "names"),
    [
        (None, ["sgl_kernel.rmsnorm", "probe_patch_tests.halved", "NPU.npu_rms_norm"]),
        (frozenset({"sgl_kernel"}), ["sgl_kernel.rmsnorm", "NPU.npu_rms_norm"]),
        (frozenset({"_C_ascend"}), ["NPU.npu_rms_norm"]),
    ],
)
def test_a_list_of_namespaces_chooses(namespaces: frozenset[str] | None, names: list[str]) -> None:
    assert recorded(calls_all, namespaces=namespaces).names() == names


def test_at_core_only_those_of_npus_are_recorded() -> None:
    assert recorded(calls_all, risk="CORE").names() == ["NPU.npu_rms_norm"]


def test_torch_npu_may_hand_out_operators_as_its_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_npu: Any = ModuleType("torch_npu")
    torch_npu.npu_rms_norm = torch.ops.npu.npu_rms_norm
    monkeypatch.setitem(sys.modules, "torch_npu", torch_npu)
    assert recorded(lambda: torch_npu.npu_rms_norm(X)).names() == ["NPU.npu_rms_norm"]


def test_torch_npu_may_have_functions_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def npu_swiglu(x: Tensor) -> Any:
        if torch.overrides.has_torch_function((x,)):
            return torch.overrides.handle_torch_function(npu_swiglu, (x,), x)
        return x.mul(2)

    torch_npu: Any = ModuleType("torch_npu")
    torch_npu.npu_swiglu = npu_swiglu
    assert recorded(lambda: npu_swiglu(X)).names() == []
    monkeypatch.setitem(sys.modules, "torch_npu", torch_npu)
    assert recorded(lambda: npu_swiglu(X)).names() == ["NPU.npu_swiglu"]


def test_every_namespace_that_torch_registers_is_known_as_its_own() -> None:
    program = """
import json
import torch, torch._inductor, torch.distributed.fsdp, torch.nn.attention.flex_attention
import torch.distributed._symmetric_memory, torch.ao.quantization.fx._decomposed
print(json.dumps(sorted({schema.name.partition("::")[0] for schema in torch._C._jit_get_all_schemas()})))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)) - _TORCHS_OWN == set()
