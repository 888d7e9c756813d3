"""msProbe's ``risk_level``: which functions matter for accuracy (mindstudio-probe 26.2.0).

ALL records every function, FOCUS leaves out those that only move, shape or make tensors, CORE keeps the ones that
multiply, normalise, look up or communicate.
"""

from typing import Final, Literal, TypeAlias

RiskLevel: TypeAlias = Literal["ALL", "FOCUS", "CORE"]

_CORE: Final = frozenset(
    """
    _fused_adamw_ _fused_adam_ matmul __matmul__ bmm mm mv addmm addmm_ addmv addmv_ addbmm addbmm_ baddbmm
    baddbmm_ addr addr_ chain_matmul linear bilinear linalg.matmul linalg.multi_dot linalg.vecdot conv1d
    conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc convolution _convolution
    batch_norm instance_norm layer_norm rms_norm group_norm local_response_norm _batch_norm_impl_index
    batch_norm_elemt batch_norm_stats batch_norm_update_stats batch_norm_gather_stats
    batch_norm_gather_stats_with_counts batch_norm_backward_elemt batch_norm_backward_reduce embedding
    embedding_bag multi_head_attention_forward scaled_dot_product_attention
    """.split()  # noqa: SIM905
)
_CORE_PREFIXES: Final = ("Distributed", "NPU")
_LOW: Final = frozenset(
    """
    squeeze unsqueeze reshape reshape_as view view_as flatten unflatten expand expand_as repeat
    repeat_interleave tile transpose permute moveaxis movedim swapaxes swapdims ravel unfold align_as
    align_to atleast_1d atleast_2d atleast_3d chunk unsafe_chunk split split_with_sizes unsafe_split
    unsafe_split_with_sizes tensor_split hsplit vsplit dsplit unbind stack cat concat concatenate hstack
    vstack dstack column_stack row_stack clamp clone stride type_as to float double int long half bfloat16
    byte char bool cfloat numpy __bool__ empty empty_like zeros zeros_like ones ones_like full full_like
    __getitem__ tensor as_tensor asarray from_numpy frombuffer new_tensor scalar_tensor empty_strided rand
    rand_like randn randn_like randint randint_like randperm arange linspace logspace eye identity diag
    diagflat diag_embed triu tril triu_indices tril_indices
    """.split()  # noqa: SIM905
)


def is_recorded(level: RiskLevel, prefix: str, name: str) -> bool:
    """Whether a function is recorded at this level.

    Args:
        level: from config.json.
        prefix: ``Functional``, ``Tensor``, ``Torch``, ``Distributed``, …
        name: below the prefix, such as ``linear`` or ``linalg.norm``.
    """
    if level == "CORE":
        return name in _CORE or prefix in _CORE_PREFIXES
    return level == "ALL" or name not in _LOW
