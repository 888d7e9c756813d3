"""A real ``ModelRunner`` on the CPU, driven by SGLang's own benchmark: the shortest caller it has.

The same lines serve SGLang 0.5.9 to 0.5.12.post1.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
from sglang import bench_one_batch
from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.distributed import parallel_state
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.model_executor.model_runner import ModelRunner
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.server_args import PortArgs, ServerArgs

Pass: TypeAlias = tuple[tuple[int, ...], str]
"""Of one forward: the next token of each request, and the SHA-256 of the logits' bytes."""

MEMORY_FRACTION = 0.5


def server_args(checkpoint: Path) -> Any:
    """What a CPU needs, and what a dump needs: nothing captured in a graph, no prefix reused."""
    return ServerArgs(
        model_path=str(checkpoint),
        device="cpu",
        dtype="float32",
        attention_backend="torch_native",
        sampling_backend="pytorch",
        grammar_backend="none",
        skip_tokenizer_init=True,
        disable_cuda_graph=True,
        disable_overlap_schedule=True,
        disable_radix_cache=True,
        max_total_tokens=1024,
        max_running_requests=8,
        mem_fraction_static=MEMORY_FRACTION,
    )


def make_runner(checkpoint: Path, is_draft_worker: bool = False) -> Any:
    """A runner of one rank. A target makes the process groups, those of an earlier one are left; a draft joins them."""
    if not is_draft_worker:
        _leave_groups()
    args = server_args(checkpoint)
    return ModelRunner(
        model_config=ModelConfig.from_server_args(args),
        mem_fraction_static=MEMORY_FRACTION,
        gpu_id=0,
        tp_rank=0,
        tp_size=1,
        moe_ep_rank=0,
        moe_ep_size=1,
        pp_rank=0,
        pp_size=1,
        nccl_port=PortArgs.init_new(args).nccl_port,
        server_args=args,
        is_draft_worker=is_draft_worker,
    )


def forwards(runner: Any, prompts: Sequence[Sequence[int]], decode_steps: int) -> Iterator[Pass]:
    """One extend of all prompts and ``decode_steps`` decodes, greedy.

    A generator, as the callers of some engines are: it holds its place between two forwards.
    """
    runner.req_to_token_pool.clear()
    runner.token_to_kv_pool_allocator.clear()
    requests = [_request(f"request-{index}", prompt) for index, prompt in enumerate(prompts)]
    tokens, logits, batch = bench_one_batch.extend(requests, runner)
    yield _pass(tokens, logits)
    for _ in range(decode_steps):
        tokens, logits = bench_one_batch.decode(tokens, batch, runner)
        yield _pass(tokens, logits)


def _request(name: str, prompt: Sequence[int]) -> Any:
    request = Req(
        rid=name,
        origin_input_text="",
        origin_input_ids=list(prompt),
        sampling_params=SamplingParams(temperature=0, max_new_tokens=16),
    )
    request.fill_ids = request.origin_input_ids
    request.prefix_indices = torch.empty(0, dtype=torch.int64)
    request.logprob_start_len = -1
    request.set_extend_input_len(len(request.fill_ids))
    return request


def _pass(tokens: torch.Tensor, logits: torch.Tensor) -> Pass:
    return tuple(tokens.tolist()), hashlib.sha256(logits.detach().contiguous().numpy().tobytes()).hexdigest()


def _leave_groups() -> None:
    """Also those that ``destroy_model_parallel`` of 0.5.9 forgets."""
    parallel_state.destroy_model_parallel()
    parallel_state.destroy_distributed_environment()
    for name, value in list(vars(parallel_state).items()):
        if isinstance(value, parallel_state.GroupCoordinator):
            setattr(parallel_state, name, None)
