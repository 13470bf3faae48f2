#!/usr/bin/env python3
# %% [markdown]
# # The same attention in eager PyTorch and by `attend`
#
#     examples/compare_with_eager.py --tokens 1024,2048,4096 --out speed.png
#
# Eager PyTorch has no sparse attention of this kind, so it computes all pairs and masks those that the plan leaves out.
# Both give the same numbers; forward and backward passes are timed in turns, medians are drawn.

# %%
from __future__ import annotations

import argparse
import pathlib
import statistics
import time
from typing import Callable, Dict, List

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import routing_transformer as rt
import torch


# %%
def eager(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    logits = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    return logits.masked_fill(~seen, -torch.inf).softmax(-1) @ v


def seconds(call: Callable[[], torch.Tensor]) -> float:
    begun = time.perf_counter()
    call().sum().backward()
    return time.perf_counter() - begun


# %% [markdown]
# A plan is made once per pass from the queries; its time counts as ours.


# %%
def measure(tokens: int, repeats: int, window: int, heads: int = 4, dim: int = 32) -> Dict[str, float]:
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, heads, tokens, dim).requires_grad_() for _ in range(3))
    normed = torch.nn.functional.layer_norm(q.detach(), (dim,))
    centroids = torch.randn(heads, max(1, tokens // window), dim)

    def ours() -> torch.Tensor:
        plan = rt.plans.routing(normed, centroids, k=normed, selection="nearest", window=window)
        return rt.attend(q, k, v, plan)

    plan = rt.plans.routing(normed, centroids, k=normed, selection="nearest", window=window)
    seen = plan.dense_counts() > 0
    difference = float((ours() - torch.nan_to_num(eager(q, k, v, seen))).abs().max())
    assert difference < 1e-4, difference
    times: Dict[str, List[float]] = {"ours": [], "eager": []}
    for _ in range(repeats):
        times["ours"].append(seconds(ours))
        times["eager"].append(seconds(lambda: eager(q, k, v, seen)))
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Times routing attention beside masked attention in eager PyTorch.")
    parser.add_argument("--tokens", default="1024,2048,4096")
    parser.add_argument("--window", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("speed.png"))
    options = parser.parse_args()
    torch.set_num_threads(rt.num_threads())
    sizes = [int(size) for size in options.tokens.split(",")]
    medians = [measure(size, options.repeats, options.window) for size in sizes]
    print(f"tokens     ours ms   eager ms   eager / ours     ({rt.num_threads()} threads, {options.repeats} repeats)")
    for size, row in zip(sizes, medians):
        ratio = row["eager"] / row["ours"]
        print(f"{size:6}   {row['ours'] * 1e3:9.1f}  {row['eager'] * 1e3:9.1f}   {ratio:8.1f}")
    for name in ("ours", "eager"):
        plt.loglog(sizes, [row[name] for row in medians], marker="o", label=name)
    plt.xlabel("tokens")
    plt.ylabel("seconds, forward and backward, plan included")
    plt.legend()
    plt.savefig(options.out, dpi=120)
    print(options.out)


if __name__ == "__main__":
    main()
