"""Is the eager attention right? Against masks made by plain loops, at small sizes; and does the model learn?

Run by `measure.py check`. A failure names the case and how far off it is.
"""
import math

import torch
import torch.nn.functional as F

import attention
import model

CLOSE = 2e-5
CLOSE_BF16 = 0.05
UNITS = (2, 3)  # batch, heads
DIM = 8


class Failure(Exception):
    pass


def require_close(what, got, wanted, limit=CLOSE):
    error = (got.float() - wanted.float()).abs().max().item()
    if not error <= limit * max(1.0, wanted.abs().max().item()):  # not: NaN must fail
        raise Failure(f"{what}: differs by {error:.3g}, allowed {limit:.3g}")


def memberships(scores, tau, selection, most=4):
    """Clusters of one token, from the definition (docs/routing.md)."""
    margins = [s - t for s, t in zip(scores, tau)]
    if selection == "nearest":
        return [margins.index(max(margins))]
    passing = sorted((c for c, margin in enumerate(margins) if margin >= 0), key=lambda c: -margins[c])
    return passing[:most] or [scores.index(max(scores))]


def list_counts(lists, n, window, shift=False):
    """In how many lists query i reads key j: [n, n]. Shifted, the key of a member stands at the next token."""
    counts = torch.zeros(n, n)
    for members in lists:
        for rank, i in enumerate(members):
            for j in members[max(0, rank - window + (not shift)):rank]:
                counts[i, j + shift] += 1
    for members in [] if shift else lists:
        for i in members:
            if counts[i, :i].sum() == 0:
                counts[i, i] += 1
    return counts


def routed_counts(scores, tau, selection, window, shift=False):
    batch, heads, n, clusters = scores.shape
    counts = torch.zeros(batch, heads, n, n)
    for b in range(batch):
        for h in range(heads):
            lists = [[] for _ in range(clusters)]
            for t in range(n):
                for c in memberships(scores[b, h, t].tolist(), tau[h].tolist(), selection):
                    lists[c].append(t)
            counts[b, h] = list_counts(lists, n, window, shift)
    return counts


def dense(q, k, v, counts, relative=None, slopes=None):
    """Softmax of the logits plus log counts; relative [n, n, dim] keys and values; zero where nothing is counted."""
    nothing = counts.sum(-1) == 0
    counts = torch.where(nothing[..., None], torch.ones(()), counts)
    logits = torch.einsum("bhid,bhjd->bhij", q, k)
    if relative is not None:
        logits = logits + torch.einsum("bhid,ijd->bhij", q, relative[0])
    logits = logits / math.sqrt(q.shape[-1])
    if slopes is not None:
        places = torch.arange(logits.shape[-1])
        logits = logits - slopes[:, None, None] * (places[:, None] - places)
    probabilities = torch.softmax(logits + counts.log(), dim=-1).masked_fill(nothing[..., None], 0.0)
    output = torch.einsum("bhij,bhjd->bhid", probabilities, v)
    return output if relative is None else output + torch.einsum("bhij,ijd->bhid", probabilities, relative[1])


def compare(what, got, wanted, inputs, limit=CLOSE):
    """Values and gradients."""
    require_close(what, got, wanted, limit)
    along = torch.randn_like(wanted)
    got_gradients = torch.autograd.grad(got, inputs, along.to(got.dtype), retain_graph=True)
    wanted_gradients = torch.autograd.grad(wanted, inputs, along)
    for i, (mine, other) in enumerate(zip(got_gradients, wanted_gradients)):
        require_close(f"{what}, gradient {i}", mine, other, limit)


def vectors(n, count):
    return [torch.randn(*UNITS, n, DIM, requires_grad=True) for _ in range(count)]


def check_position_patterns():
    for n, window, chunk in ((37, 8, None), (37, 8, 3), (40, 5, 20), (4, 9, None), (1, 1, None), (33, 1, 4)):
        q, k, v = vectors(n, 3)
        offset = torch.arange(n) - torch.arange(n)[:, None]
        causal = (offset <= 0).float()
        what = f"n {n}, window {window}, chunk {chunk}"
        compare(f"full, {what}", attention.full_attention(q, k, v), dense(q, k, v, causal), (q, k, v))
        near = causal * (offset > -window)
        compare(f"local, {what}", attention.local_attention(q, k, v, window, chunk=chunk), dense(q, k, v, near),
                (q, k, v))
        tables = [torch.randn(window, DIM, requires_grad=True) for _ in range(2)]
        rows = (offset + window - 1).clamp(0, window - 1)
        compare(f"local with offsets, {what}",
                attention.local_attention(q, k, v, window, attention.Relative(*tables), chunk),
                dense(q, k, v, near, [t[rows] for t in tables]), (q, k, v, *tables))
        slopes = torch.rand(UNITS[1])
        compare(f"local with recency, {what}", attention.local_attention(q, k, v, window, None, chunk, slopes),
                dense(q, k, v, near, slopes=slopes), (q, k, v))


def check_lists():
    seen = set()
    for n, window, chunk in ((37, 8, None), (37, 8, 3), (60, 2, 5), (33, 1, 4), (29, 64, None), (1, 4, None)):
        for selection in ("nearest", "threshold"):
            x, v = vectors(n, 2)
            centroids, tau = torch.randn(UNITS[1], 6, DIM), 2.0 * torch.rand(UNITS[1], 6) - 0.5
            how = attention.Lists(window, chunk=chunk)
            output, scores, members = attention.routing_attention(x, v, centroids, tau, selection, how)
            seen.update(torch.bincount(members.rows).tolist())
            counts = routed_counts(scores, tau, selection, window)
            what = f"{selection}, n {n}, window {window}, chunk {chunk}"
            compare(what, output, dense(x, x, v, counts), (x, v))
            factor = torch.rand(UNITS[1], requires_grad=True)
            how = attention.Lists(window, shift=True, scale=0.5, factor=factor, chunk=chunk)
            output, _, _ = attention.routing_attention(x, v, centroids, tau, selection, how)
            counts = routed_counts(scores, tau, selection, window, shift=True)
            queries = x * factor[:, None, None] * 0.5 * math.sqrt(DIM)
            compare(f"{what}, shifted", output, dense(queries, F.pad(x, (0, 0, 1, -1)), v, counts), (x, v, factor))
    if seen != {1, 2, 3, 4}:
        raise Failure(f"threshold: tokens of 1 to 4 lists were wanted, but there were {sorted(seen)}")


def check_balanced():
    n, window, clusters = 30, 8, 4
    x, v = vectors(n, 2)
    centroids = torch.randn(UNITS[1], clusters, DIM)
    output, scores, _ = attention.balanced_attention(x, v, centroids, window)
    parts, members = [], []
    for c in range(clusters):
        best = torch.zeros(*UNITS, n).scatter(-1, scores[..., c].argsort(descending=True)[..., :window], 1.0)
        counts = (best[..., None] * best[..., None, :]).tril()
        counts = counts + torch.diag_embed(1.0 - best)  # rows of no member must not be empty; they are dropped below
        parts.append(dense(x, x, v, counts) * best[..., None])
        members.append(best)
    compare("balanced", output, sum(parts) / sum(members).clamp(min=1.0)[..., None], (x, v))


def check_bf16():
    n, window = 64, 8
    x, v = vectors(n, 2)
    centroids, tau = torch.randn(UNITS[1], 6, DIM), torch.rand(UNITS[1], 6)
    for selection in ("nearest", "threshold"):
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            output, scores, _ = attention.routing_attention(x, v, centroids, tau, selection, attention.Lists(window))
        counts = routed_counts(scores, tau, selection, window)
        compare(f"{selection} in bf16", output, dense(x, x, v, counts), (x, v), CLOSE_BF16)


def check_centroids():
    """One update against the formulas of src/routing/attention/routing/centroids.h, cluster by cluster."""
    heads, clusters, tokens = 2, 3, 50
    state = model.Centroids(heads, clusters, DIM)
    for step in range(2):
        old = {name: value.clone() for name, value in state.named_buffers()}
        x = torch.randn(1, heads, tokens, DIM)
        scores = attention.scores_of(x, state.means)
        best = scores.argmax(-1)
        state.seen = (x, scores, best)
        state.update()
        for h in range(heads):
            counts = [0.999 * old["counts"][h, c] + 0.001 * (best[0, h] == c).sum() for c in range(clusters)]
            total = sum(counts)
            for c in range(clusters):
                sums = 0.999 * old["sums"][h, c] + 0.001 * x[0, h][best[0, h] == c].sum(0)
                mean = sums / ((counts[c] + 1e-5) / (total + clusters * 1e-5) * total)
                require_close(f"centroid after update {step + 1}", state.means[h, c], mean)
                s = scores[0, h, :, c]
                tau = old["tau"][h, c] + s.std(unbiased=False) * ((s >= old["tau"][h, c]).float().mean() - 1 / clusters)
                if step == 0:  # the first is the quantile of the scores against the moved centroid
                    tau = (x[0, h] @ mean).sort().values[int((1 - 1 / clusters) * tokens)]
                require_close(f"threshold after update {step + 1}", state.tau[h, c], tau)


def require_learning(what, training, tokens):
    losses = [training.step(tokens) for _ in range(25)]
    if not losses[-1] < losses[0] - 0.5:
        raise Failure(f"{what}: the loss was {losses[0]:.3f} and after 25 steps {losses[-1]:.3f}")
    for name, weight in training.model.named_parameters():
        if weight.grad is None or not torch.isfinite(weight.grad).all() or not weight.grad.abs().max() > 0:
            raise Failure(f"{what}: the gradient of {name} is missing, zero or not finite")


def check_model():
    """A short text is learnt, every weight has a finite gradient, and no prediction reads what it predicts."""
    tokens = torch.randint(0, 16, (2, 48)).repeat(1, 2)
    for content, bf16, added in (("routing", False, False), ("routing", True, False), ("routing", False, True),
                                 ("local", False, False), ("full", False, False)):
        config = model.ModelConfig(layers=2, width=32, heads=4, content_heads=2, content=content, clusters=4, window=16,
                                   content_layers=1 if added else 0, add_content=added, recency=added, feedforward=64)
        training = model.Training(config, bf16)
        what = f"model with {content}{' added' if added else ''}{' in bf16' if bf16 else ''}"
        require_learning(what, training, tokens)
        check_causal(what, training.model, tokens)


@torch.no_grad()
def check_causal(what, trained, tokens):
    changed = tokens.clone()
    changed[:, 60] = (changed[:, 60] + 1) % 16
    before, after = (trained.logits(t) for t in (tokens, changed))
    require_close(f"{what}: predictions up to a changed token", after[:, :61], before[:, :61])
    if torch.allclose(after[:, 61:], before[:, 61:]):
        raise Failure(f"{what}: predictions do not depend on earlier tokens")


CHECKS = (check_position_patterns, check_lists, check_balanced, check_bf16, check_centroids, check_model)


def run():
    import check_public  # which takes its tools from here
    checks = CHECKS + check_public.CHECKS
    for check in checks:
        torch.manual_seed(3)
        try:
            check()
        except Failure as failure:
            print(f"{check.__module__}, {check.__name__}: {failure}")
            return 1
    print(f"{len(checks)} checks of the eager implementations passed")
    return 0
