"""slime's Megatron actor (THUDM/slime since 2025-07-18, and radixark/miles, which descends from it).

The anchors are structural and hold on every version of the file; see ``anchors``.
"""
