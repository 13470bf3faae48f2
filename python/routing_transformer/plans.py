"""The patterns as functions that make plans.

A plan says which keys every query may read. Patterns of position need sizes only; `lsh` and `routing`
look at the vectors. All take:

    kind          "causal", "bidirectional" or "cross" (queries of one sequence, keys of another)
    padding       bool [batch, tokens], True where there is no token, as in torch.nn.MultiheadAttention
    self_rule     may a token read itself: "allowed", or "only_if_alone" if it sees nothing else

A plan's lists are tensors (query_order, key_order, groups, unit_offsets; docs/architecture.md explains
them); dense_counts() says for short sequences how often each query reads each key.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from torch import Tensor

from . import _core
from ._core import Plan

__all__ = ["fixed", "full", "local", "local2d", "lsh", "random", "routing", "strided"]


def _marks(name: str, padding: Optional[Tensor]) -> Optional[Tensor]:
    if padding is not None and padding.dtype != torch.bool:
        raise _core.InputError(f"{name} is {padding.dtype}, but must be bool, True where there is no token")
    return padding


def _by_position(
    pattern: str,
    fields: Dict[str, Any],
    batch: int,
    heads: int,
    tokens: int,
    *,
    keys: Optional[int] = None,
    kind: str = "causal",
    padding: Optional[Tensor] = None,
    key_padding: Optional[Tensor] = None,
    self_rule: str = "allowed",
    seed: int = 1,
    step: int = 0,
) -> Plan:
    if kind == "cross" and keys is None:
        raise _core.InputError(f"{pattern}: kind is 'cross', but the number of keys was not given")
    sizes = [batch, heads, tokens, tokens if keys is None else keys]
    if min(sizes) < 0:
        raise _core.InputError(f"{pattern}: batch, heads, tokens and keys are {sizes}, but none may be negative")
    given = {name: value for name, value in fields.items() if value is not None}
    return _core.make_plan(
        pattern,
        given,
        sizes,
        kind,
        query_padding=_marks("padding", padding),
        key_padding=_marks("key_padding", key_padding),
        self_rule=self_rule,
        seed=seed,
        step=step,
    )


def full(batch: int, heads: int, tokens: int, **options: Any) -> Plan:
    """Every key; when causal, every key up to the query's own position."""
    return _by_position("full", {}, batch, heads, tokens, **options)


def local(
    batch: int,
    heads: int,
    tokens: int,
    window: int = 256,
    *,
    form: str = "sliding",
    lookahead: Optional[int] = None,
    flange: Optional[int] = None,
    **options: Any,
) -> Plan:
    """The last `window` tokens, itself included; form="block": its block and `flange` blocks beside it."""
    fields = {"window": window, "form": form, "lookahead": lookahead, "flange": flange}
    return _by_position("local", fields, batch, heads, tokens, **options)


def strided(batch: int, heads: int, tokens: int, stride: int = 64, **options: Any) -> Plan:
    """Every `stride`-th token before the query."""
    return _by_position("strided", {"stride": stride}, batch, heads, tokens, **options)


def fixed(
    batch: int, heads: int, tokens: int, stride: int = 64, summary: int = 8, **options: Any
) -> Plan:
    """The last `summary` tokens of every cell of `stride` tokens (Sparse Transformer)."""
    return _by_position("fixed", {"stride": stride, "summary": summary}, batch, heads, tokens, **options)


def local2d(
    batch: int,
    heads: int,
    tokens: int,
    image_width: int,
    *,
    rows: int = 8,
    columns: int = 8,
    above: int = 8,
    beside: int = 8,
    **options: Any,
) -> Plan:
    """Images in raster order, three values per pixel: blocks of pixels and what is near them."""
    fields = {
        "image_width": image_width,
        "rows": rows,
        "columns": columns,
        "above": above,
        "beside": beside,
    }
    return _by_position("local2d", fields, batch, heads, tokens, **options)


def random(
    batch: int, heads: int, tokens: int, groups: int = 8, window: int = 256, **options: Any
) -> Plan:
    """`groups` sets of `window` random positions each; `seed` and `step` name the draw."""
    return _by_position("random", {"groups": groups, "window": window}, batch, heads, tokens, **options)


def _by_content(
    pattern: str,
    fields: Dict[str, Any],
    q: Tensor,
    k: Optional[Tensor],
    *,
    kind: str,
    padding: Optional[Tensor],
    key_padding: Optional[Tensor],
    self_rule: str,
    seed: int = 1,
    centroids: Optional[Tensor] = None,
    thresholds: Optional[Tensor] = None,
) -> Plan:
    if q.dim() != 4:
        raise _core.InputError(
            f"{pattern}: queries are {list(q.shape)}, but must be [batch, heads, tokens, dim]"
        )
    batch, heads, tokens, _ = q.shape
    given = {name: value for name, value in fields.items() if value is not None}
    return _core.make_plan(
        pattern,
        given,
        [batch, heads, tokens, tokens if k is None else k.shape[2]],
        kind,
        query_padding=_marks("padding", padding),
        key_padding=_marks("key_padding", key_padding),
        queries=q,
        keys=k,
        centroids=centroids,
        thresholds=thresholds,
        self_rule=self_rule,
        seed=seed,
    )


def lsh(
    q: Tensor,
    *,
    buckets: int = 16,
    rounds: int = 1,
    window: int = 256,
    lookahead: Optional[int] = None,
    kind: str = "causal",
    padding: Optional[Tensor] = None,
    self_rule: str = "only_if_alone",
    seed: int = 1,
) -> Plan:
    """Tokens whose vectors fall into the same bucket of random rotations (Reformer); keys are queries."""
    fields = {"buckets": buckets, "rounds": rounds, "window": window, "lookahead": lookahead}
    return _by_content(
        "lsh",
        fields,
        q,
        None,
        kind=kind,
        padding=padding,
        key_padding=None,
        self_rule=self_rule,
        seed=seed,
    )


def routing(
    q: Tensor,
    centroids: Tensor,
    k: Optional[Tensor] = None,
    *,
    thresholds: Optional[Tensor] = None,
    window: int = 256,
    selection: str = "threshold",
    max_memberships: int = 4,
    lookahead: Optional[int] = None,
    kind: str = "causal",
    padding: Optional[Tensor] = None,
    key_padding: Optional[Tensor] = None,
    self_rule: str = "allowed",
) -> Plan:
    """Tokens choose clusters by their products with centroids [heads, clusters, dim]; clusters are groups.

    q [batch, heads, tokens, dim] (and k, where keys are not queries) should be layer-normalised
    without gain or bias, as RoutingAttention does. selection:

        "threshold"   every cluster whose score passes thresholds [heads, clusters] (zero unless told)
        "nearest"     the cluster with the best score less threshold
        "balanced"    every cluster takes its `window` best tokens, as in the paper: reads the future
    """
    if centroids.dim() != 3:
        raise _core.InputError(
            f"routing: centroids are {list(centroids.shape)}, but must be [heads, clusters, dim]"
        )
    fields = {
        "window": window,
        "selection": selection,
        "clusters": centroids.shape[1],
        "max_memberships": max_memberships,
        "lookahead": lookahead,
    }
    return _by_content(
        "routing",
        fields,
        q,
        k,
        kind=kind,
        padding=padding,
        key_padding=_marks("key_padding", key_padding),
        self_rule=self_rule,
        centroids=centroids,
        thresholds=thresholds,
    )
