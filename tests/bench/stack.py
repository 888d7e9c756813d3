"""The models that benchmarks train: transformers whose step is nearly all overhead, or nearly all computing."""

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

HEADS: Final = 8
VOCABULARY: Final = 1000


@dataclass(frozen=True)
class Shape:
    """A transformer, and the batch it is fed: [batch, length] tokens, float32 inside."""

    layers: int
    hidden: int
    length: int
    batch: int = 2

    def __str__(self) -> str:
        return f"{self.layers} layers, hidden {self.hidden}, length {self.length}"


SHAPES: Final = (Shape(8, 32, 8), Shape(60, 32, 8), Shape(8, 512, 256))


class Attention(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, hidden = x.shape
        heads = self.qkv(x).view(batch, length, 3, HEADS, hidden // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = heads.unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        result: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, hidden))
        return result


class FeedForward(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(hidden, 4 * hidden)
        self.act = nn.GELU()
        self.down = nn.Linear(4 * hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down(self.act(self.up(x)))
        return result


class Block(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm_1 = nn.LayerNorm(hidden)
        self.attention = Attention(hidden)
        self.norm_2 = nn.LayerNorm(hidden)
        self.feed_forward = FeedForward(hidden)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x))
        result: Tensor = x + self.feed_forward(self.norm_2(x))
        return result


class Transformer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, shape.hidden)
        self.layers = nn.ModuleList(Block(shape.hidden) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.hidden)
        self.head = nn.Linear(shape.hidden, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        result: Tensor = self.head(self.norm(x))
        return result


class Training:
    """One model and its optimizer."""

    def __init__(self, shape: Shape) -> None:
        torch.manual_seed(0)
        self.model = Transformer(shape)
        self._optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self._tokens = torch.randint(0, VOCABULARY, (shape.batch, shape.length))

    def step(self) -> None:
        """Forward, backward and SGD."""
        logits = self.model(self._tokens).view(-1, VOCABULARY)
        loss = functional.cross_entropy(logits, self._tokens.view(-1))
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._optimizer.zero_grad()
