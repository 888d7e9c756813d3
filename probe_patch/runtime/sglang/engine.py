"""Whose forward it is: the process's place in its inference engine, whatever SGLang version it runs in."""

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeGuard

from probe_patch.dump_format import PdRole
from probe_patch.runtime.ranks import GroupPlace


@dataclass(frozen=True)
class Engine:
    """One process of one engine; what a version does not know is None.

    Attributes:
        rank: of this process among all of its engine, data-parallel replicas included.
        size: how many processes that engine has.
        places: tp, pp, dp and ep.
        gpu_id: counted on its node.
        dist_port: of the engine's torch.distributed group.
        host, port: where the engine serves HTTP.
    """

    rank: int
    size: int
    places: Mapping[str, GroupPlace]
    gpu_id: int | None
    node_rank: int | None
    nodes: int | None
    dist_port: int | None
    dist_init_addr: str | None
    host: str | None
    port: int | None
    role: PdRole
    is_draft: bool

    def members(self) -> Mapping[str, object]:
        """Members of meta.json's ``engine``."""
        members = asdict(self)
        del members["places"]
        return members


def engine_of(runner: object, arguments: Mapping[str, object]) -> Engine:
    """Read a ``ModelRunner`` whose ``__init__`` has returned.

    Ranks are attributes of it up to 0.5.15 and in 0.5.21, of its ``ps`` from 0.5.16 to 0.5.20, and in a context of the
    process from 0.5.22 on; ``dp_rank`` is only an argument of ``__init__`` from 0.5.1 to 0.5.11.

    Args:
        runner: the model runner.
        arguments: what its ``__init__`` was given, by parameter.
    """
    server_args = _attribute(runner, "server_args")
    sources = (runner, _attribute(runner, "ps"), _process_context("get_parallel"))

    def number(*names: str) -> int | None:
        values = (_attribute(source, name) for name in names for source in sources)
        given = (arguments.get(name) for name in names)
        return next((value for value in (*values, *given) if _is_number(value)), None)

    def setting(name: str, kind: type) -> Any:
        value = _attribute(server_args, name)
        return value if isinstance(value, kind) else None

    tp = GroupPlace(number("tp_rank") or 0, number("tp_size") or setting("tp_size", int) or 1)
    pp = GroupPlace(number("pp_rank") or 0, number("pp_size") or setting("pp_size", int) or 1)
    ep = GroupPlace(number("moe_ep_rank") or 0, number("moe_ep_size") or setting("ep_size", int) or 1)
    shares_one_group = bool(setting("enable_dp_attention", bool)) or (number("attn_dp_size") or 1) > 1
    if shares_one_group:
        size = number("attn_dp_size") or setting("dp_size", int) or 1
        # As SGLang lays them out: consecutive tensor-parallel ranks share one data-parallel rank.
        dp = GroupPlace(number("attn_dp_rank", "dp_rank") or tp.rank // max(tp.size // size, 1), size)
        replica = GroupPlace(0, 1)
    else:
        dp = replica = GroupPlace(number("dp_rank") or 0, setting("dp_size", int) or 1)
    role = setting("disaggregation_mode", str)
    return Engine(
        rank=(replica.rank * pp.size + pp.rank) * tp.size + tp.rank,
        size=replica.size * pp.size * tp.size,
        places={"tp": tp, "pp": pp, "dp": dp, "ep": ep},
        gpu_id=number("gpu_id"),
        node_rank=setting("node_rank", int),
        nodes=setting("nnodes", int),
        dist_port=number("dist_port", "nccl_port"),
        dist_init_addr=setting("dist_init_addr", str),
        host=setting("host", str),
        port=setting("port", int),
        role=role if role == "prefill" or role == "decode" else "null",
        is_draft=bool(arguments.get("is_draft_worker") or _attribute(runner, "is_draft_worker")),
    )


@dataclass(frozen=True)
class ModelState:
    """What a runner says of its model at the moment; weight updates change it.

    Attributes:
        forward_pass_id: how many forwards began, from 0.4.6.post5 on; skipped and idle ones count.
        weight_version: from 0.5.19 on. Before, updates are known to the tokenizer's process only.
    """

    forward_pass_id: int | None
    model_path: str | None
    weight_version: str | None


def state_of(runner: object) -> ModelState:
    """Read a ``ModelRunner``, best when a forward is over: it counts itself as it begins."""
    number = _attribute(runner, "forward_pass_id")
    path = _attribute(_attribute(runner, "server_args"), "model_path")
    version = _attribute(_process_context("get_serving"), "weight_version")
    return ModelState(
        forward_pass_id=number if _is_number(number) else None,
        model_path=path if isinstance(path, str) else None,
        weight_version=version if isinstance(version, str) else None,
    )


def _process_context(getter: str) -> object:
    """What a function of SGLang's context gives, if that is loaded: an import of ours would change the run."""
    with contextlib.suppress(Exception):
        return getattr(sys.modules.get("sglang.srt.runtime_context"), getter)()
    return None


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _attribute(owner: object, name: str) -> object:
    """A property of a context that was not published raises."""
    with contextlib.suppress(Exception):
        return getattr(owner, name, None)
    return None
