"""Small GPT models of megatron-core, one per way to spread them over ranks."""

from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules, get_num_layers_to_build
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import nn

from tests.frameworks.fingerprints import seed
from tests.frameworks.megatron.on_cpu import Norm, PackedAttention
from tests.frameworks.megatron.shapes import LENGTH, ROWS, VOCABULARY, Shape


def lay_out_groups(shape: Shape) -> None:
    """Megatron's groups, instead of those that may be there."""
    parallel_state.destroy_model_parallel()
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=shape.tensor,
        pipeline_model_parallel_size=shape.pipeline,
        virtual_pipeline_model_parallel_size=shape.chunks if shape.chunks > 1 else None,
        expert_model_parallel_size=shape.expert,
        expert_tensor_parallel_size=1,
    )


def build(shape: Shape) -> list[nn.Module]:
    """This rank's chunks, with the same weights at every call."""
    seed(7)
    config = _config(shape)
    return [_chunk(shape, config, number) for number in range(shape.chunks)]


def _chunk(shape: Shape, config: TransformerConfig, number: int) -> nn.Module:
    stage = number if shape.chunks > 1 else None
    model: nn.Module = GPTModel(
        config=config,
        transformer_layer_spec=_layers(shape, config, stage),
        vocab_size=VOCABULARY,
        max_sequence_length=LENGTH * ROWS,
        pre_process=parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=stage),
        post_process=parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=stage),
        parallel_output=True,
        share_embeddings_and_output_weights=False,
        position_embedding_type="rope",
        vp_stage=stage,
    )
    if not shape.wrapped:
        return model
    reduced = DistributedDataParallelConfig(grad_reduce_in_fp32=True, overlap_grad_reduce=False)
    wrapper: nn.Module = DistributedDataParallel(config, reduced, model)
    return wrapper


def _config(shape: Shape) -> TransformerConfig:
    recompute: dict[str, Any] = {}
    if shape.recompute == "full":
        recompute = {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
    elif shape.recompute == "selective":
        recompute = {"recompute_granularity": "selective", "recompute_modules": ["core_attn"]}
    experts: dict[str, Any] = {}
    if shape.experts:
        experts = {
            "num_moe_experts": shape.experts,
            "moe_router_topk": 2,
            "moe_ffn_hidden_size": 32,
            "moe_token_dispatcher_type": "allgather",
            "moe_router_load_balancing_type": "aux_loss",
            "moe_aux_loss_coeff": 0.01,
        }
    return TransformerConfig(
        num_layers=shape.layers,
        hidden_size=32,
        num_attention_heads=4,
        num_query_groups=2,
        ffn_hidden_size=64,
        tensor_model_parallel_size=shape.tensor,
        pipeline_model_parallel_size=shape.pipeline,
        virtual_pipeline_model_parallel_size=shape.chunks if shape.chunks > 1 else None,
        expert_model_parallel_size=shape.expert,
        sequence_parallel=shape.tensor > 1,
        pipeline_dtype=torch.float32,
        normalization="RMSNorm",
        qk_layernorm=True,
        add_bias_linear=False,
        gated_linear_unit=True,
        activation_func=nn.functional.silu,
        init_method_std=0.2,
        hidden_dropout=shape.dropout,
        attention_dropout=shape.dropout,
        # As Megatron asks of two ranks with several chunks, lest activations and gradients be taken for each other.
        # What gloo is then still sending must not be freed.
        deallocate_pipeline_outputs=shape.chunks == 1,
        overlap_p2p_comm=shape.chunks > 1,
        batch_p2p_comm=shape.chunks == 1,
        # From here on: what would need CUDA.
        use_cpu_initialization=True,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        masked_softmax_fusion=False,
        apply_rope_fusion=False,
        gradient_accumulation_fusion=False,
        persist_layer_norm=False,
        batch_p2p_sync=False,
        **experts,
        **recompute,
    )


def _layers(shape: Shape, config: TransformerConfig, stage: int | None) -> TransformerBlockSubmodules:
    spec = get_gpt_layer_local_spec(
        num_experts=shape.experts or None, moe_grouped_gemm=False, qk_layernorm=True, normalization="RMSNorm"
    )
    layer, attention = spec.submodules, spec.submodules.self_attention.submodules
    layer.input_layernorm = layer.pre_mlp_layernorm = Norm
    attention.q_layernorm = attention.k_layernorm = Norm
    if shape.packed:
        attention.core_attention = PackedAttention
    return TransformerBlockSubmodules([spec] * get_num_layers_to_build(config, stage), layer_norm=Norm)
