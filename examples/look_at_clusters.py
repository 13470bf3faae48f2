#!/usr/bin/env python3
# %% [markdown]
# # Which tokens find each other? The clusters of a model that `routing train` made
#
#     examples/look_at_clusters.py runs/mine --text "…" --out clusters.png
#
# Every letter of the text is painted in the colour of the cluster that it is in, once for each routed head of a layer.
# Letters of one colour can read each other however far apart they are. Below: who is read where one token is predicted.

# %%
from __future__ import annotations

import argparse
import pathlib
from typing import Any, Dict, List

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from routing_transformer import Model

COLUMNS = 64


# %% [markdown]
# `clusters()` gives a bool array [tokens, clusters] for every routed head; row t + 1 is token t.


# %%
def paint(axes: Any, text: List[str], members: np.ndarray[Any, Any], title: str) -> None:
    colours = plt.get_cmap("tab20")
    axes.set_title(title, fontsize=9, loc="left")
    axes.set_xlim(0, COLUMNS)
    axes.set_ylim(-((len(text) - 1) // COLUMNS) - 1, 0)
    axes.axis("off")
    for token, letter in enumerate(text[: len(members) - 1]):
        row, column = divmod(token, COLUMNS)
        inside = np.flatnonzero(members[token + 1])
        colour = colours(int(inside[0]) % 20) if len(inside) else (0.9, 0.9, 0.9, 1.0)
        axes.add_patch(plt.Rectangle((column, -row - 1), 1, 1, color=colour, alpha=0.6, linewidth=0))
        axes.text(column + 0.5, -row - 0.5, letter, ha="center", va="center", fontsize=6, family="monospace")


# %% [markdown]
# `attention()` says for one position what each head reads, and with what weight.


# %%
def most_read(model: Model, text: str, position: int, tokens: List[str]) -> None:
    print(f"where {''.join(tokens[max(0, position - 20):position])!r} goes on with {tokens[position]!r}:")
    for head in model.attention(text, position):
        best = sorted(zip(head["weights"].tolist(), head["tokens"].tolist()), reverse=True)[:4]
        shown = ", ".join(f"{tokens[t]!r} at {t} ({w:.2f})" if t >= 0 else f"the start ({w:.2f})" for w, t in best)
        print(f"  layer {head['layer']} head {head['head']} {head['pattern']:8} {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws the clusters of a text's tokens.")
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--text", default="The old man of the sea told the old woman of the hills what the sea had said.")
    parser.add_argument("--position", type=int, help="the token whose prediction is looked at; the last unless told")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("clusters.png"))
    options = parser.parse_args()
    model = Model.load(options.run)
    print(model)
    ids = model.encode(options.text)
    tokens = [model.decode([int(i)]) for i in ids]
    clusters: Dict[Any, Any] = model.clusters(options.text)
    if not clusters:
        raise SystemExit(f"{options.run}: has no routed heads; train with attention.content=routing")
    top = max(layer for layer, _ in clusters)
    heads = [(layer, head) for layer, head in clusters if layer == top]
    figure, panels = plt.subplots(len(heads), 1, figsize=(10, 0.6 + len(heads) * (0.5 + len(tokens) / COLUMNS / 4)))
    for panel, (layer, head) in zip(np.atleast_1d(panels), heads):
        paint(panel, tokens, clusters[layer, head], f"layer {layer}, head {head}")
    figure.savefig(options.out, dpi=130, bbox_inches="tight")
    most_read(model, options.text, len(tokens) - 1 if options.position is None else options.position, tokens)
    print(options.out)


if __name__ == "__main__":
    main()
