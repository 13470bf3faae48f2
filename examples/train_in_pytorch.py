#!/usr/bin/env python3
# %% [markdown]
# # A byte model in plain PyTorch around RoutingAttention
#
#     examples/train_in_pytorch.py --data book.txt --steps 300 --out curves.png
#
# Two models that differ in one word, the content of half of their heads, learn the same batches. The figure shows what
# a byte costs either of them, step by step.

# %%
from __future__ import annotations

import argparse
import math
import pathlib
import time
from typing import Dict, List

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import routing_transformer as rt
import torch
from torch import nn


# %% [markdown]
# A block as everybody writes it. Only the attention is ours: it returns `(output, None)`, as
# `torch.nn.MultiheadAttention` does.


# %%
class Block(nn.Module):
    def __init__(self, width: int, number: int, content: str) -> None:
        super().__init__()
        self.before_attention, self.before_forward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = rt.RoutingAttention(
            width, 8, content=content, content_heads=4, clusters=16, window=64, layer=number
        )
        self.forward_part = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before_attention(x))[0]
        return x + self.forward_part(self.before_forward(x))


def byte_model(content: str, width: int = 128, layers: int = 2) -> nn.Module:
    torch.manual_seed(1)
    blocks = [Block(width, number, content) for number in range(layers)]
    return nn.Sequential(nn.Embedding(256, width), *blocks, nn.LayerNorm(width), nn.Linear(width, 256))


# %% [markdown]
# The loop. One line is new: `update_centroids` after the optimizer's step.


# %%
def train(content: str, text: torch.Tensor, steps: int, length: int, batch: int = 4) -> List[float]:
    model = byte_model(content)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    generator = torch.Generator().manual_seed(2)
    bits: List[float] = []
    begun = time.time()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * min(1.0, (step + 1) / 20) * 0.5 * (1.0 + math.cos(math.pi * step / steps))
        places = torch.randint(len(text) - length - 1, (batch,), generator=generator)
        pieces = torch.stack([text[place : place + length + 1] for place in places.tolist()])
        logits = model(pieces[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rt.update_centroids(model)
        bits.append(float(loss) / math.log(2.0))
    print(f"{content:8} {bits[-1]:.3f} bits/byte after {steps} steps, {time.time() - begun:.1f} s")
    return bits


# %%
def smooth(values: List[float], span: int) -> List[float]:
    return [sum(values[max(0, i - span + 1) : i + 1]) / min(i + 1, span) for i in range(len(values))]


def main() -> None:
    parser = argparse.ArgumentParser(description="Local against routed heads in a plain PyTorch loop.")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a file of any kind; its bytes are read")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--length", type=int, default=512, help="bytes of a sequence")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("curves.png"))
    options = parser.parse_args()
    text = torch.frombuffer(bytearray(options.data.read_bytes()), dtype=torch.uint8).long()
    if len(text) < options.length + 2:
        parser.error(f"{options.data} has {len(text)} bytes, but a sequence needs {options.length + 2}")
    torch.set_num_threads(rt.num_threads())
    curves: Dict[str, List[float]] = {
        content: train(content, text, options.steps, options.length) for content in ("local", "routing")
    }
    for content, bits in curves.items():
        plt.plot(smooth(bits, 20), label=f"{content} heads")
    plt.xlabel("step")
    plt.ylabel("bits per byte of the batch, mean of 20 steps")
    plt.legend()
    plt.savefig(options.out, dpi=120)
    print(options.out)


if __name__ == "__main__":
    main()
