"""A model built as the best-known public PyTorch implementation of the Routing Transformer builds its own.

The structure of lucidrains/routing-transformer 1.6.1, written anew, with its defaults for causal models and the sizes
of a ModelConfig:

    local heads    a projection with biases of their own; rotary positions; a block of `window` tokens reads itself and
                   the block before, so up to two windows and on average one and a half
    routed heads   shared queries and keys, no biases; rotary positions turn queries, keys and values; keys of length 1
    clusters       n / window of them; each takes the `window` tokens of the whole sequence that are nearest to its mean
                   (so which tokens it holds depends on later ones), all of them attend to each other where their places
                   allow it, to themselves only if there is no other; a token in several gets the mean, in none zero
    means          ten rounds of k-means over the first batch, then moving averages, by 0.001 per step, of the unit-length
                   mean of each cluster's nearest tokens; 1e-4 times the squared distance joins the loss
    layers         norm, attention, sum; norm, GELU feed-forward of four times the width, sum; a norm at the end
    a step         forward, backward, gradients clipped to a norm of 0.5, Adam with a rate of 1e-4, means

All layers have equally many heads there, so routed heads always take the place of local ones. There are no tables of
offsets. Where its operations can be had in fewer passes with the same result, they are: one mask instead of three, rows
copied as rows, one product for what is the same. bf16 is torch.autocast, which leaves the softmax in bfloat16.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from attention import Chunks
from model import Steps

TO_ITSELF = -5e4  # below every real logit and above `never`: a token that sees no other sees itself
FIRST_ROUNDS = 10
DECAY = 0.999
COMMITMENT = 1e-4
MEAN_EPS = 1e-5


def never(logits):
    return torch.finfo(logits.dtype).min


class Rotation:
    """Turns pairs of numbers by angles that grow with the position; pairs are a half apart."""

    def __init__(self, n, dim):
        angles = torch.arange(n)[:, None] * 10000.0**(-torch.arange(0, dim, 2) / dim)
        self.cos, self.sin = (torch.cat([part, part], dim=-1) for part in (angles.cos(), angles.sin()))

    def __call__(self, x):
        """x [..., n, dim]"""
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-second, first], dim=-1) * sin


def block_attention(q, k, v, window):
    """Each block of `window` tokens reads itself and the one before. n must be a multiple of the window."""
    chunks = Chunks(window, 1)
    queries = chunks.cut(q / math.sqrt(q.shape[-1]))
    logits = torch.matmul(queries, chunks.with_previous(chunks.cut(k)).transpose(-2, -1))
    unseen = (chunks.offsets() > 0).repeat(queries.shape[-3], 1, 1)
    unseen[0, :, :window] = True  # before the sequence begins
    probabilities = torch.softmax(logits.masked_fill_(unseen, never(logits)), dim=-1)
    return torch.matmul(probabilities, chunks.with_previous(chunks.cut(v))).flatten(-3, -2)


def members_of(scores, window):
    """scores [batch, heads, n, clusters] -> places [batch, heads, clusters, window], best first."""
    return scores.topk(min(window, scores.shape[-2]), dim=-2).indices.transpose(-2, -1)


def cluster_attention(q, k, v, places):
    """Inside each cluster, in the order of true places; the mean over a token's clusters."""
    batch, heads, n, dim = q.shape
    rows = (places + torch.arange(batch * heads).view(batch, heads, 1, 1) * n).flatten()
    queries, keys, values = (x.reshape(-1, dim)[rows].view(*places.shape, dim)
                             for x in (q / math.sqrt(dim), F.normalize(k, dim=-1), v))
    logits = torch.matmul(queries, keys.transpose(-2, -1))
    later = places[..., :, None] < places[..., None, :]
    logits = logits.masked_fill_(later, never(logits))
    logits.diagonal(dim1=-2, dim2=-1).fill_(TO_ITSELF)
    output = torch.matmul(torch.softmax(logits, dim=-1), values).reshape(-1, dim)
    total = torch.zeros(batch * heads * n, dim, dtype=output.dtype).index_add(0, rows, output)
    count = torch.bincount(rows, minlength=len(total)).to(output.dtype)
    return (total / (count + MEAN_EPS)[:, None]).view(q.shape)


class Means(nn.Module):
    """The means of a layer's clusters, of unit length at first."""

    def __init__(self, heads, clusters, dim):
        super().__init__()
        self.register_buffer("means", torch.randn(heads, clusters, dim))
        self.started = False
        self.next = None

    def scores_of(self, x):
        return torch.matmul(x, self.means.to(x.dtype).transpose(-2, -1))

    def moved(self, x, nearest):
        """The unit-length mean of the tokens of each cluster; where there are none, the mean there was."""
        heads, clusters, dim = self.means.shape
        index = (nearest + clusters * torch.arange(heads)[:, None]).flatten()
        sums = torch.zeros(heads * clusters, dim).index_add_(0, index, x.float().flatten(0, 2))
        empty = torch.bincount(index, minlength=heads * clusters) == 0
        sums = F.normalize(sums, dim=-1).view_as(self.means)
        return torch.where(empty.view(heads, clusters, 1), self.means, sums)

    def start(self, x):
        tokens = x.transpose(0, 1).flatten(1, 2)
        self.means = tokens[:, torch.randperm(tokens.shape[1])[:self.means.shape[1]]].float()
        for _ in range(FIRST_ROUNDS):
            self.means = self.moved(x, self.scores_of(x).argmax(-1))
        self.started = True

    def forward(self, q):
        """Scores of unit-length queries [batch, heads, n, dim], and what joins the loss."""
        x = F.normalize(q, dim=-1)
        with torch.no_grad():
            if not self.started:
                self.start(x)
            scores = self.scores_of(x)
            nearest = scores.argmax(-1)
            if self.training:
                self.next = self.moved(x, nearest)
        chosen = self.means[torch.arange(q.shape[1])[:, None], nearest]
        return scores, COMMITMENT * F.mse_loss(x.float(), chosen)

    @torch.no_grad()
    def update(self):
        self.means = torch.lerp(self.next, self.means, DECAY)
        self.next = None


class Attention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.dim, self.window = config.dim, config.window
        routed = config.content_heads_of(layer)
        local = config.heads - routed
        self.local_projection = nn.Linear(config.width, 3 * local * config.dim) if local else None
        self.centroids = Means(routed, config.clusters, config.dim) if routed else None
        if routed:
            self.query = nn.Linear(config.width, routed * config.dim, bias=False)
            self.value = nn.Linear(config.width, routed * config.dim, bias=False)
        self.output = nn.Linear(config.heads * config.dim, config.width, bias=False)

    def heads_of(self, x):
        return x.unflatten(-1, (-1, self.dim)).transpose(1, 2)

    def forward(self, x, rotation):
        outputs, extra = [], 0.0
        if self.local_projection is not None:
            q, k, v = (self.heads_of(part) for part in self.local_projection(x).chunk(3, dim=-1))
            outputs.append(block_attention(rotation(q), rotation(k), v, self.window))
        if self.centroids is not None:
            q, v = (rotation(self.heads_of(layer(x))) for layer in (self.query, self.value))
            scores, extra = self.centroids(q)
            outputs.append(cluster_attention(q, q, v, members_of(scores, self.window)))
        merged = torch.cat(outputs, dim=1).transpose(1, 2).flatten(2)
        return self.output(merged), extra


class Block(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.attention_norm, self.feedforward_norm = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attention = Attention(config, layer)
        self.feedforward = nn.Sequential(nn.Linear(config.width, config.feedforward), nn.GELU(),
                                         nn.Linear(config.feedforward, config.width))

    def forward(self, x, rotation):
        output, extra = self.attention(self.attention_norm(x), rotation)
        x = x + output
        return x + self.feedforward(self.feedforward_norm(x)), extra


class PublicModel(nn.Module):
    """Sizes from a model.ModelConfig; what this structure has no counterpart of is left out."""

    def __init__(self, config, n):
        super().__init__()
        if n % config.window != 0 or config.clusters * config.window != n:
            raise ValueError(f"{config.clusters} clusters of {config.window} tokens are not the sequence of {n}")
        self.rotation = Rotation(n, config.dim)
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.layers))
        self.last_norm = nn.LayerNorm(config.width)
        self.output = nn.Linear(config.width, config.vocabulary)

    def forward(self, tokens):
        """Mean loss of every token given those before it, and what the routed heads add to it."""
        logits, extra = self.predictions(tokens)
        return F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten()), extra

    def predictions(self, tokens):
        x = self.embedding(F.pad(tokens[:, :-1], (1, 0)))
        extra = 0.0
        for block in self.blocks:
            x, more = block(x, self.rotation)
            extra = extra + more
        return self.output(self.last_norm(x)), extra


class Training(Steps):
    def __init__(self, config, n, bf16, rate=1e-4):
        super().__init__(PublicModel(config, n), bf16, clip=0.5, lr=rate)
