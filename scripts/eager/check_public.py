"""Is the public implementation's structure right? Against plain loops, at small sizes; part of `measure.py check`."""
import math

import torch
import torch.nn.functional as F

import model
import public_structure
from check import DIM, UNITS, Failure, compare, dense, require_close, require_learning, vectors


def check_blocks():
    for n, window in ((32, 8), (12, 12), (6, 1)):
        q, k, v = vectors(n, 3)
        seen = torch.tensor([[float(window * (i // window - 1) <= j <= i) for j in range(n)] for i in range(n)])
        compare(f"blocks, n {n}, window {window}", public_structure.block_attention(q, k, v, window),
                dense(q, k, v, seen), (q, k, v))


def cluster_loops(q, k, v, scores, window):
    """One token after the other: the mean over its clusters of attention to their earlier members."""
    batch, heads, n, clusters = scores.shape
    sums = [[[torch.zeros(DIM) for _ in range(n)] for _ in range(heads)] for _ in range(batch)]
    counts = torch.zeros(batch, heads, n, 1)
    for b in range(batch):
        for h in range(heads):
            for c in range(clusters):
                ranking = sorted(range(n), key=lambda t: -scores[b, h, t, c].item())
                members = sorted(ranking[:window])
                for i in members:
                    read = [j for j in members if j < i] or [i]
                    keys = torch.stack([k[b, h, j] / k[b, h, j].norm() for j in read])
                    weights = torch.softmax(keys @ q[b, h, i] / math.sqrt(DIM), dim=0)
                    sums[b][h][i] = sums[b][h][i] + weights @ v[b, h, read]
                    counts[b, h, i] += 1
    return torch.stack([torch.stack([torch.stack(rows) for rows in unit]) for unit in sums]) / (counts + 1e-5), counts


def check_clusters():
    n, window, clusters = 24, 6, 4
    q, k, v = vectors(n, 3)
    scores = torch.randn(*UNITS, n, clusters)
    places = public_structure.members_of(scores, window)
    if places.shape != (*UNITS, clusters, window):
        raise Failure(f"clusters: {list(places.shape)} members")
    wanted, counts = cluster_loops(q, k, v, scores, window)
    if not (counts == 0).any() or not (counts > 1).any():
        raise Failure("clusters: tokens in none and in several were wanted")
    output = public_structure.cluster_attention(q, k, v, places)
    compare("clusters", output, wanted, (q, k, v))
    # What it promises of the future: with the same members, none reads a later one.
    changed = [torch.cat([x[..., :13, :], torch.randn_like(x[..., 13:, :])], dim=-2) for x in (q, k, v)]
    after = public_structure.cluster_attention(*changed, places)
    require_close("clusters: outputs before a change", after[..., :13, :], output[..., :13, :])


def check_clusters_by_hand():
    """Four tokens, two clusters of two: {1, 2} and {2, 3}. 0 is in none, 1 and 2 are the first of one."""
    scores = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0], [0.0, 1.0]]).view(1, 1, 4, 2)
    q = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 1.0]]).view(1, 1, 4, 2)
    v = torch.tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 4.0], [5.0, 5.0]]).view(1, 1, 4, 2)
    output = public_structure.cluster_attention(q, q, v, public_structure.members_of(scores, 2))
    # 1 and, in the second cluster, 2 have nobody but themselves; 2 reads 1 in the first; 3 reads 2.
    wanted = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0], [0.0, 4.0]]).view(1, 1, 4, 2)
    require_close("clusters by hand", output, wanted)


def check_means():
    heads, clusters, n = 2, 3, 40
    means = public_structure.Means(heads, clusters, DIM)
    q = torch.randn(2, heads, n, DIM)
    means(q)
    for step in range(2):
        old, x = means.means.clone(), F.normalize(q, dim=-1)
        scores, loss = means(q)
        require_close("scores", scores, torch.einsum("bhtd,hcd->bhtc", x, old))
        means.update()
        distance = 0.0
        for h in range(heads):
            nearest = scores[:, h].argmax(-1)
            distance += sum((x[:, h][nearest == c] - old[h, c]).square().sum() for c in range(clusters))
            for c in range(clusters):
                mean = x[:, h][nearest == c].sum(0)
                wanted = 0.999 * old[h, c] + 0.001 * mean / mean.norm()
                require_close(f"mean after update {step + 1}", means.means[h, c], wanted)
        require_close("distance to the means", loss, 1e-4 * distance / x.numel())
        q = q + 0.1 * torch.randn_like(q)
    before = means.means.clone()
    empty = means.moved(F.normalize(q, dim=-1), torch.zeros(2, heads, n, dtype=torch.long))
    require_close("means of clusters without tokens", empty[:, 1:], before[:, 1:])


def check_model():
    tokens = torch.randint(0, 16, (2, 48)).repeat(1, 2)
    config = model.ModelConfig(layers=2, width=32, heads=4, content_heads=2, content_layers=1, clusters=6, window=16,
                               feedforward=64)
    for bf16 in (False, True):
        require_learning(f"public structure{' in bf16' if bf16 else ''}",
                         public_structure.Training(config, 96, bf16, rate=1e-3), tokens)
    local = public_structure.PublicModel(config._replace(content="local"), 96)
    changed = tokens.clone()
    changed[:, 60] = (changed[:, 60] + 1) % 16
    with torch.no_grad():
        before, after = (local.predictions(t)[0] for t in (tokens, changed))
    require_close("blocks: predictions up to a changed token", after[:, :61], before[:, :61])


CHECKS = (check_blocks, check_clusters, check_clusters_by_hand, check_means, check_model)
