"""Full, local and routing attention in eager PyTorch: gather, matmul, mask, softmax, matmul, scatter.

The same functions as our operations with the preset "ours" (docs/routing.md), as a PyTorch user would write them:

    full, local          q, k, v [batch, heads, n, dim]; local is the last `window` tokens, itself included
    nearest, threshold   a list of tokens for each cluster, in order of time; a query reads the last `window` members of
                         its lists. All lists one after the other are one long list, which is cut into chunks. A chunk
                         reads itself and the one before it; a mask keeps lists and windows apart. No list is padded.
    balanced             the `window` best tokens of each cluster (the paper); the mean over a token's clusters

Keys of routed heads are their queries. With `shift` the key of a token is the query of the token before it, in the
lists of that token, so that a query reads what followed its like; who finds no key gets zero. Without it a token is a
key of itself only if it reads no other (not so in `balanced`).
Every softmax is in float32, as torch.autocast would have it; autocast chooses the precision of the products.
"""
import math
from typing import NamedTuple

import torch
import torch.nn.functional as F

UNSEEN = -1e9  # finite: a row without keys must not become NaN


def full_attention(q, k, v):
    n, dim = q.shape[-2:]
    future = torch.ones(n, n, dtype=torch.bool).triu(1)
    logits = torch.matmul(q / math.sqrt(dim), k.transpose(-2, -1)).masked_fill_(future, UNSEEN)
    return torch.matmul(torch.softmax(logits.float(), dim=-1), v)


class Chunks(NamedTuple):
    """Queries in chunks of `size`; each reads its own chunk and the `before` ones before it."""
    size: int
    before: int

    @property
    def span(self):
        return (self.before + 1) * self.size

    def offsets(self):
        """Place of the key minus place of the query: [size, span]."""
        return torch.arange(self.span) - self.before * self.size - torch.arange(self.size)[:, None]

    def cut(self, x):
        """[..., n, dim] -> [..., chunks, size, dim], zeros at the end."""
        rest = -x.shape[-2] % self.size
        return (F.pad(x, (0, 0, 0, rest)) if rest else x).unflatten(-2, (-1, self.size))

    def with_previous(self, x):
        """[..., chunks, size, dim] -> [..., chunks, span, dim]."""
        count = x.shape[-3]
        padded = F.pad(x, (0, 0, 0, 0, self.before, 0))
        return torch.cat([padded.narrow(-3, i, count) for i in range(self.before + 1)], dim=-2)


def chunks_for(window, size=None):
    size = size or window
    return Chunks(size, -(-(window - 1) // size))


class Relative(NamedTuple):
    """Tables [window, dim] of the offsets -(window - 1) … 0 (Shaw et al.)."""
    key: torch.Tensor
    value: torch.Tensor


def offsets_to_span(x, chunks):
    """[..., size, window] by offset -> [..., size, span] by key: each row one place further right than the last."""
    size, window = x.shape[-2:]
    left = chunks.before * size - (window - 1)
    padded = F.pad(x, (left, chunks.span + 1 - window - left)).flatten(-2)
    return padded[..., :size * chunks.span].unflatten(-1, (size, chunks.span))


def span_to_offsets(x, chunks, window):
    """The way back."""
    size = x.shape[-2]
    left = chunks.before * size - (window - 1)
    return F.pad(x.flatten(-2), (0, size)).unflatten(-1, (size, chunks.span + 1))[..., left:left + window]


def local_attention(q, k, v, window, relative=None, chunk=None, slopes=None):
    """With slopes [heads] a logit loses its head's for every token between query and key (ALiBi)."""
    n, dim = q.shape[-2:]
    chunks = chunks_for(window, chunk)
    queries = chunks.cut(q / math.sqrt(dim))
    logits = torch.matmul(queries, chunks.with_previous(chunks.cut(k)).transpose(-2, -1))
    if relative is not None:
        logits += offsets_to_span(torch.matmul(queries, relative.key.t()), chunks)
    offset = chunks.offsets()
    unseen = ((offset > 0) | (offset <= -window)).repeat(queries.shape[-3], 1, 1)
    for i in range(min(chunks.before, len(unseen))):
        unseen[i, :, :(chunks.before - i) * chunks.size] = True  # before the sequence begins
    logits = logits.masked_fill_(unseen, UNSEEN).float()
    if slopes is not None:
        logits += slopes.view(-1, 1, 1, 1) * offset
    probabilities = torch.softmax(logits, dim=-1)
    output = torch.matmul(probabilities, chunks.with_previous(chunks.cut(v)))
    if relative is not None:
        output = output + torch.matmul(span_to_offsets(probabilities, chunks, window), relative.value)
    return output.flatten(-3, -2)[..., :n, :]


def scores_of(x, centroids):
    """x [batch, heads, n, dim], centroids [heads, clusters, dim] -> [batch, heads, n, clusters], in float32."""
    with torch.autocast(device_type="cpu", enabled=False):
        return torch.matmul(x.float(), centroids.transpose(-2, -1))


class Members(NamedTuple):
    """Who is in which list: rows of [batch * heads * n] and the numbers of their lists, by list and then by time."""
    rows: torch.Tensor
    lists: torch.Tensor


def list_members(scores, tau, selection, most=4):
    batch, heads, n, clusters = scores.shape
    unit = torch.arange(batch * heads).view(batch, heads, 1)
    margin = scores - tau[:, None, :]
    if selection == "nearest":
        cluster, order = margin.argmax(-1).sort(dim=-1, stable=True)
        return Members((order + unit * n).flatten(), (cluster + unit * clusters).flatten())
    best, cluster = margin.topk(min(most, clusters), dim=-1)
    joins = best >= 0
    cluster[..., 0] = torch.where(joins[..., 0], cluster[..., 0], scores.argmax(-1))  # none passes: the best score
    joins[..., 0] = True
    rows = (unit * n + torch.arange(n)).unsqueeze(-1).expand_as(cluster)[joins]
    lists, order = (unit.unsqueeze(-1) * clusters + cluster)[joins].sort(stable=True)
    return Members(rows[order], lists)


def reads_earlier(members, tokens):
    """Has a token, bool [tokens], another before it in one of its lists?"""
    rows, lists = members
    return torch.zeros(tokens, dtype=torch.bool).index_fill_(0, rows[1:][lists[1:] == lists[:-1]], True)


def seen_in_lists(members, tokens, window, chunks, shift=False):
    """What each place sees of its chunk and those before it: bool [chunks, size, span]."""
    rows, lists = members
    rest = -len(lists) % chunks.size
    query_list = F.pad(lists, (0, rest), value=-1).view(-1, chunks.size)
    key_list = F.pad(lists, (chunks.before * chunks.size, rest), value=-2).unfold(0, chunks.span, chunks.size)
    offset = chunks.offsets()
    seen = query_list[:, :, None] == key_list[:, None, :]
    if shift:
        return seen & (offset < 0) & (offset >= -window)
    alone = torch.ones(tokens, dtype=torch.bool) if window == 1 else ~reads_earlier(members, tokens)
    alone = F.pad(alone[rows], (0, rest)).view(-1, chunks.size)
    return seen & (((offset < 0) & (offset > -window)) | ((offset == 0) & alone[:, :, None]))


class Lists(NamedTuple):
    """How a query reads the lists of its clusters."""
    window: int
    shift: bool = False
    scale: float = None  # of the logits; 1 / sqrt(dim) unless given
    factor: torch.Tensor = None  # [heads]: one more for each head
    chunk: int = None

    def chunks(self):
        return chunks_for(self.window + self.shift, self.chunk or self.window)  # one place more: the query's is no key


def list_attention(x, v, members, how, overlap=True):
    """Attention over lists. With `overlap` a token may be in several: one softmax over the keys of all of them."""
    heads, n, dim = x.shape[-3:]
    chunks = how.chunks()
    tokens = x.shape[:-1].numel()
    rows = members.rows
    places = chunks.cut(x.reshape(tokens, dim)[rows])
    scale = how.scale or 1 / math.sqrt(dim)
    if how.factor is not None:
        of_rows = how.factor.repeat_interleave(n).repeat(tokens // (heads * n))[rows]
        scale = F.pad(scale * of_rows, (0, -len(rows) % chunks.size)).view(-1, chunks.size, 1)
    seen = seen_in_lists(members, tokens, how.window, chunks, how.shift)
    logits = torch.matmul(places * scale, chunks.with_previous(places).transpose(-2, -1))
    logits = logits.masked_fill_(~seen, UNSEEN).float()
    # The last token of a sequence has no next one. It is also the last of its list, where nobody reads its key.
    value_rows = (rows + 1).clamp_(max=tokens - 1) if how.shift else rows
    values = chunks.with_previous(chunks.cut(v.reshape(tokens, -1)[value_rows]))
    if not overlap:
        output = torch.matmul(torch.softmax(logits, dim=-1), values).flatten(0, 1)[:len(rows)]
        output = torch.empty_like(output).index_copy(0, rows, output)
    else:
        # Numerator and denominator of the softmax are added up over a token's lists, below the token's largest logit.
        largest = logits.detach().amax(-1).flatten()[:len(rows)]
        largest = torch.full((tokens,), UNSEEN).scatter_reduce(0, rows, largest, "amax")
        powers = torch.exp(logits - F.pad(largest[rows], (0, -len(rows) % chunks.size)).view(-1, chunks.size, 1))
        numerator = torch.matmul(powers, values).flatten(0, 1)[:len(rows)].float()
        denominator = powers.sum(-1).flatten()[:len(rows)]
        total = torch.zeros(tokens, numerator.shape[-1]).index_add(0, rows, numerator)
        weight = torch.zeros(tokens).index_add(0, rows, denominator)
        output = total / weight[:, None]
    if how.shift:
        output = output.masked_fill_(~reads_earlier(members, tokens)[:, None], 0.0)
    return output.view(v.shape)


def routing_attention(x, v, centroids, tau, selection, how):
    """nearest or threshold; x are the normalised queries. Also returns the scores, for the update of the centroids."""
    with torch.no_grad():
        scores = scores_of(x, centroids)
        members = list_members(scores, tau, selection)
    output = list_attention(x, v, members, how, overlap=selection == "threshold")
    return output, scores, members


def balanced_attention(x, v, centroids, window):
    """The paper's Algorithm 1 with shared queries and keys."""
    batch, heads, n, dim = x.shape
    with torch.no_grad():
        scores = scores_of(x, centroids)
        best = scores.transpose(-2, -1).topk(min(window, n), dim=-1).indices.sort(dim=-1).values
        rows = (best + torch.arange(batch * heads).view(batch, heads, 1, 1) * n).flatten()
    clusters, size = best.shape[2:]
    places = x.reshape(-1, dim)[rows].view(batch, heads, clusters, size, dim)
    values = v.reshape(-1, dim)[rows].view(batch, heads, clusters, size, dim)
    output = full_attention(places, places, values).reshape(-1, dim).float()
    total = torch.zeros(batch * heads * n, dim).index_add(0, rows, output)
    count = torch.bincount(rows, minlength=batch * heads * n).clamp(min=1)
    return (total / count[:, None]).view(v.shape), scores, rows
