"""A toy model that has much of what a recorder can get wrong."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn, relu


class Attention(nn.Module):
    """Keyword arguments, a mask, and a tuple as output."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x: Tensor, mask: Tensor | None = None, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        weights = (self.query(x) @ self.key(x).transpose(-1, -2)) * scale
        if mask is not None:
            weights = weights.masked_fill(mask, -1e9)
        return self.dropout(F.softmax(weights, -1)) @ x, weights


class Block(nn.Module):
    """An in-place module inside."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 8))

    def forward(self, x: Tensor) -> Any:
        x = x + self.attention(self.norm(x), mask=torch.zeros(4, 4, dtype=torch.bool), scale=0.5)[0]
        return x + self.mlp(x)


class Toy(nn.Module):
    """Operators both ways round, an index, and a function that was imported early."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(9, 8)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(8, 9)

    def forward(self, tokens: Tensor) -> Any:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        x = torch.cat([x[:2], x[2:]])
        x = relu(x) - 1 + 2 * x
        x = x / (x.abs().mean() + 1)
        return self.head(1 - torch.mm(x, torch.eye(8)))
