"""The one operation: softmax attention over any plan."""

from __future__ import annotations

import math
from typing import Literal, Optional, Tuple, Union, overload

import torch
from torch import Tensor

from . import _core
from ._core import Plan


@overload
def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: Plan,
    *,
    scale: Optional[float] = None,
    merge: str = "lse",
    merge_eps: float = 0.0,
    relative: str = "none",
    relative_key: Optional[Tensor] = None,
    relative_value: Optional[Tensor] = None,
    recency: Optional[Tensor] = None,
    dropout: float = 0.0,
    precision: str = "fp32",
    return_lse: Literal[False] = False,
) -> Tensor: ...


@overload
def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: Plan,
    *,
    scale: Optional[float] = None,
    merge: str = "lse",
    merge_eps: float = 0.0,
    relative: str = "none",
    relative_key: Optional[Tensor] = None,
    relative_value: Optional[Tensor] = None,
    recency: Optional[Tensor] = None,
    dropout: float = 0.0,
    precision: str = "fp32",
    return_lse: Literal[True],
) -> Tuple[Tensor, Tensor]: ...


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: Plan,
    *,
    scale: Optional[float] = None,
    merge: str = "lse",
    merge_eps: float = 0.0,
    relative: str = "none",
    relative_key: Optional[Tensor] = None,
    relative_value: Optional[Tensor] = None,
    recency: Optional[Tensor] = None,
    dropout: float = 0.0,
    precision: str = "fp32",
    return_lse: bool = False,
) -> Union[Tensor, Tuple[Tensor, Tensor]]:
    """Attention of every query over the keys that the plan lets it read.

    q is [batch, heads, queries, dim], k [batch, heads, keys, dim], v [batch, heads, keys, value_dim],
    float32 or float64, with any strides: nothing is copied. The result is [batch, heads, queries,
    value_dim]; a query that reads no key gets zeros. Differentiable once in q, k, v and both tables.

    scale            of the logits; 1 / sqrt(dim) unless told
    merge            several groups of a query: "lse", one softmax over all keys, or "mean" of their results
    merge_eps        "mean" divides by (groups + merge_eps)
    relative         what indexes the tables: "none", "true_offset" or "rank"
    relative_key     [2 * max + 1, dim], added to keys; relative_value likewise to values
    recency          [heads]: what a logit loses for every token between query and key (ALiBi)
    dropout          of attention probabilities; draws its key from torch's generator
    precision        "bf16" rounds the factors of products where the processor gains by it, "auto" as well,
                     "fp32" never does
    return_lse       also the logarithm of the sum of exponentials, [batch, heads, queries]

    Tensors of bfloat16, as under autocast, are taken to float32 first, computed with precision="bf16",
    and the result is taken back. Anything that does not fit raises InputError with both values.
    """
    out_type = q.dtype
    if out_type == torch.bfloat16:
        q, k, v = q.float(), k.float(), v.float()
        precision = "bf16"
    if isinstance(scale, Tensor):
        if scale.requires_grad:
            raise _core.InputError(
                "attend: scale has a gradient, but is a number here; multiply the queries by it and give scale=1.0"
            )
        scale = float(scale)
    key = int(torch.randint(2**62, ())) if dropout > 0.0 else 0
    if scale is None:
        # Vectors without numbers: every logit is zero, whatever the scale.
        scale = 1.0 / math.sqrt(q.shape[-1]) if len(q.shape) > 0 and q.shape[-1] > 0 else 1.0
    output, lse = _core.attend(
        q,
        k,
        v,
        plan,
        scale,
        merge,
        merge_eps,
        relative,
        relative_key,
        relative_value,
        recency,
        dropout,
        key,
        precision,
    )
    if output.dtype != out_type:
        output = output.to(out_type)
    return (output, lse) if return_lse else output
