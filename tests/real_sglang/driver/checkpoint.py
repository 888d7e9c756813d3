"""A tiny Qwen2 with fixed random weights, in the files Hugging Face's are in."""

import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

CONFIG = Path(__file__).parents[1] / "model" / "config.json"
HIDDEN, FEED_FORWARD, LAYERS, HEAD_DIM, HEADS, KEY_VALUE_HEADS, VOCABULARY = 64, 128, 2, 16, 4, 2, 256


def write_checkpoint(folder: Path, seed: int) -> None:
    """``config.json`` and ``model.safetensors`` (float32) into ``folder``."""
    folder.mkdir(parents=True)
    shutil.copy(CONFIG, folder / "config.json")
    generator = torch.Generator().manual_seed(seed)
    weights = {
        name: torch.randn(shape, generator=generator) * 0.1 + (1.0 if name.endswith("norm.weight") else 0.0)
        for name, shape in _shapes().items()
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in _layer_shapes().items()}
    return shapes | {"model.norm.weight": (HIDDEN,), "lm_head.weight": (VOCABULARY, HIDDEN)}


def _layer_shapes() -> dict[str, tuple[int, ...]]:
    query, key = HEADS * HEAD_DIM, KEY_VALUE_HEADS * HEAD_DIM
    return {
        "self_attn.q_proj.weight": (query, HIDDEN),
        "self_attn.q_proj.bias": (query,),
        "self_attn.k_proj.weight": (key, HIDDEN),
        "self_attn.k_proj.bias": (key,),
        "self_attn.v_proj.weight": (key, HIDDEN),
        "self_attn.v_proj.bias": (key,),
        "self_attn.o_proj.weight": (HIDDEN, query),
        "mlp.gate_proj.weight": (FEED_FORWARD, HIDDEN),
        "mlp.up_proj.weight": (FEED_FORWARD, HIDDEN),
        "mlp.down_proj.weight": (HIDDEN, FEED_FORWARD),
        "input_layernorm.weight": (HIDDEN,),
        "post_attention_layernorm.weight": (HIDDEN,),
    }


if __name__ == "__main__":
    for seed, folder in enumerate(sys.argv[1:]):
        write_checkpoint(Path(folder), seed)
