"""Our decoder-only byte model (src/routing/model) in eager PyTorch, with Adam, clipping and the update of centroids.

Norms come first, ReLU feed-forward layer with biases, no absolute positions, no dropout, output layer of its own; local
heads know offsets by Shaw's tables and start near-sighted (recency); routed heads share queries and keys, which are
layer-normalised, shifted by a token and scaled by a learned factor, and take the place of local heads or join them.
Two differences, neither of which costs time: no centroid is ever revived, and weights come from PyTorch's generator.
"""
import math
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from attention import Lists, Relative, full_attention, local_attention, routing_attention


class ModelConfig(NamedTuple):
    vocabulary: int = 256
    layers: int = 6
    width: int = 512
    heads: int = 8
    content_heads: int = 4
    content: str = "routing"  # routing, full; local: all heads are
    selection: str = "threshold"
    clusters: int = 32
    window: int = 256
    routing_window: int = 0  # 0: as local heads
    feedforward: int = 2048
    content_layers: int = 0  # the top ones that have content heads; 0: all
    add_content: bool = False  # content heads join the local ones instead of taking their places
    relative: bool = True
    recency: bool = False
    shift: bool = True  # of routed keys
    learned_scale: bool = True
    scale: float = None  # of routed logits; 1 / sqrt(dim) unless given
    chunk: int = None

    @property
    def dim(self):
        return self.width // self.heads

    def content_heads_of(self, layer):
        has_content = self.content != "local" and layer >= self.layers - (self.content_layers or self.layers)
        return self.content_heads if has_content else 0

    def local_heads_of(self, layer):
        return self.heads if self.add_content else self.heads - self.content_heads_of(layer)


def table(rows, columns, scale=1.0):
    """Uniform, variance `scale` over the mean of fan-in and fan-out."""
    limit = math.sqrt(6.0 * scale / (rows + columns))
    return nn.Parameter(torch.empty(rows, columns).uniform_(-limit, limit))


class Centroids(nn.Module):
    """Moving averages of the tokens whose best score is a centroid's, and thresholds (docs/routing.md)."""

    def __init__(self, heads, clusters, dim, decay=0.999, laplace=1e-5):
        super().__init__()
        start = F.layer_norm(torch.randn(heads, clusters, dim), (dim,), eps=1e-6)
        self.register_buffer("means", start)
        self.register_buffer("sums", start.clone())
        self.register_buffer("counts", torch.ones(heads, clusters))
        self.register_buffer("tau", torch.zeros(heads, clusters))
        self.decay, self.laplace = decay, laplace
        self.started = False
        self.seen = None  # vectors, scores and best clusters of the last forward

    @torch.no_grad()
    def update(self):
        x, scores, best = self.seen
        self.seen = None
        heads, clusters, dim = self.means.shape
        x, scores, best = (t.transpose(0, 1).flatten(1, 2) for t in (x, scores, best))  # [heads, tokens, ...]
        index = (best + clusters * torch.arange(heads)[:, None]).flatten()
        count = torch.bincount(index, minlength=heads * clusters).view(heads, clusters).float()
        total = torch.zeros(heads * clusters, dim).index_add_(0, index, x.flatten(0, 1)).view(heads, clusters, dim)
        moved = count > 0
        self.counts = torch.where(moved, torch.lerp(count, self.counts, self.decay), self.counts)
        self.sums = torch.where(moved[..., None], torch.lerp(total, self.sums, self.decay), self.sums)
        everything = self.counts.sum(-1, keepdim=True)
        smooth = (self.counts + self.laplace) / (everything + clusters * self.laplace) * everything
        self.means = torch.where(moved[..., None], self.sums / smooth[..., None], self.means)
        if self.started:
            share = (scores >= self.tau[:, None]).float().mean(1)
            self.tau += scores.std(1, unbiased=False) * (share - 1.0 / clusters)
        else:
            tokens = scores.shape[1]
            rank = min(tokens, int((1.0 - 1.0 / clusters) * tokens) + 1)
            self.tau = torch.matmul(x, self.means.transpose(-2, -1)).kthvalue(rank, dim=1).values
            self.started = True


class Attention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.config = config
        width, dim = config.width, config.dim
        self.local, self.content = config.local_heads_of(layer), config.content_heads_of(layer)
        routed = config.content == "routing" and self.content > 0
        self.query = table((self.local + self.content) * dim, width)
        self.key = table((self.local if routed else self.local + self.content) * dim, width)
        self.value = table((self.local + self.content) * dim, width)
        self.output = table(width, (self.local + self.content) * dim)
        if config.add_content and self.content > 0:
            with torch.no_grad():
                self.output[:, self.local * dim:] = 0.0  # silent at first
        if config.relative and self.local > 0:
            self.relative_key = table(2 * config.window + 1, dim)
            self.relative_value = table(2 * config.window + 1, dim)
        self.slopes = None
        if config.recency:
            self.slopes = 2.0**(-8.0 * torch.arange(1, self.local + 1) / config.heads)
        self.log_scale = nn.Parameter(torch.zeros(self.content)) if routed and config.learned_scale else None
        self.centroids = Centroids(self.content, config.clusters, dim) if routed else None

    def heads_of(self, x, weight):
        return F.linear(x, weight).unflatten(-1, (-1, self.config.dim)).transpose(1, 2)

    def forward(self, x):
        config, local = self.config, self.local
        q, k, v = (self.heads_of(x, weight) for weight in (self.query, self.key, self.value))
        outputs, extra = [], None
        if local > 0:
            relative = None
            if config.relative:  # rows 1 … window are the offsets -(window - 1) … 0
                relative = Relative(*(t[1:config.window + 1] for t in (self.relative_key, self.relative_value)))
            outputs.append(local_attention(q[:, :local], k[:, :local], v[:, :local], config.window, relative,
                                           config.chunk, self.slopes))
        if self.centroids is not None:
            output, extra = self.routed(q[:, local:], v[:, local:])
            outputs.append(output)
        elif self.content > 0:
            outputs.append(full_attention(q[:, local:], k[:, local:], v[:, local:]))
        merged = torch.cat(outputs, dim=1).transpose(1, 2).flatten(2)
        return F.linear(merged, self.output), extra

    def routed(self, q, v):
        config, centroids = self.config, self.centroids
        normal = F.layer_norm(q.float(), (config.dim,), eps=1e-6)
        how = Lists(config.routing_window or config.window, config.shift, config.scale,
                    None if self.log_scale is None else self.log_scale.exp(), config.chunk)
        output, scores, _ = routing_attention(normal, v, centroids.means, centroids.tau, config.selection, how)
        best = scores.argmax(-1)
        nearest = centroids.means[torch.arange(q.shape[1])[:, None], best]
        if self.training:
            centroids.seen = (normal.detach(), scores, best)
        return output, 1e-4 * F.mse_loss(normal, nearest)


class Block(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width, eps=1e-6)
        self.attention = Attention(config, layer)
        self.feedforward_norm = nn.LayerNorm(config.width, eps=1e-6)
        self.feedforward = nn.Sequential(nn.Linear(config.width, config.feedforward), nn.ReLU(),
                                         nn.Linear(config.feedforward, config.width))

    def forward(self, x):
        output, extra = self.attention(self.attention_norm(x))
        x = x + output
        return x + self.feedforward(self.feedforward_norm(x)), extra


class ByteModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.layers))
        self.last_norm = nn.LayerNorm(config.width, eps=1e-6)
        self.output = nn.Linear(config.width, config.vocabulary)

    def forward(self, tokens):
        """Mean loss of every token given those before it, and what the routed heads add to it."""
        logits, extra = self.predictions(tokens)
        return F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten()), extra

    def logits(self, tokens):
        return self.predictions(tokens)[0]

    def predictions(self, tokens):
        x = self.embedding(F.pad(tokens[:, :-1], (1, 0)))
        extra = 0.0
        for block in self.blocks:
            x, more = block(x)
            extra = extra if more is None else extra + more
        return self.output(self.last_norm(x)), extra


class Steps:
    """Training steps: forward, backward, clipping, Adam, then what each attention moves by itself."""

    def __init__(self, model, bf16, clip, **adam):
        self.model, self.bf16, self.clip = model, bf16, clip
        self.optimizer = torch.optim.Adam(model.parameters(), **adam)

    def step(self, tokens):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16, enabled=self.bf16):
            loss, extra = self.model(tokens)
        (loss + extra).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        for block in self.model.blocks:
            if block.attention.centroids is not None:
                block.attention.centroids.update()
        return loss.item()


class Training(Steps):
    def __init__(self, config, bf16):
        super().__init__(ByteModel(config), bf16, clip=1.0, lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
