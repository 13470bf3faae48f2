"""RoutingAttention: a layer of local and routed heads for models written in PyTorch."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

import torch
import torch.distributed
from torch import Tensor, nn

from . import _core
from ._core import ConfigError, InputError, Plan

__all__ = ["RoutingAttention", "update_centroids"]


# Keys that arguments of RoutingAttention stand for, each by one way only.
_ARGUMENT_OF = {
    "model.width": "width",
    "model.head_dim": "head_dim",
    "model.attention_dropout": "dropout",
    "attention.heads": "heads",
    "attention.content": "content",
    "attention.content_heads": "content_heads",
    "routing.clusters": "clusters",
    "routing.selection": "selection",
}


class _AddLoss(torch.autograd.Function):
    """The output as it is; in the backward pass `loss` gets the gradient `scale`, as if it were in the total."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, output: Tensor, loss: Tensor, scale: float
    ) -> Tensor:
        ctx.scale = scale
        ctx.loss_shape = loss.shape
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Tensor, Tensor, None]:  # type: ignore[override]
        return gradient, gradient.new_full(ctx.loss_shape, ctx.scale), None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _bool_mask(name: str, mask: Optional[Tensor]) -> Optional[Tensor]:
    """True for padding. PyTorch 2 hands on masks as what is added to logits: 0 or -inf."""
    if mask is None or mask.dtype == torch.bool:
        return mask
    if not mask.is_floating_point():
        raise InputError(
            f"RoutingAttention: {name} is {mask.dtype}, but must be bool, True for padding; of an attention_mask "
            "with 1 for tokens give attention_mask == 0"
        )
    padding = mask == -torch.inf
    if not bool((padding | (mask == 0)).all()):
        raise InputError(
            f"RoutingAttention: {name} has numbers other than 0 and -inf; keys are read or they are not"
        )
    return padding


_NOT_COPIED = (
    "_layer",
    "_modules",
    "_parameters",
    "_buffers",
    "_own_parameters",
    "_own_buffers",
    "last_plans",
    "auxiliary_loss",
)


class RoutingAttention(nn.Module):
    """Multi-head attention whose heads read by position (local) or by content (routed).

    A drop-in for ``torch.nn.MultiheadAttention(width, heads, batch_first=True)``: called with the same
    arguments, returns ``(output, None)``. What a head may read is its pattern's to say, so there is no
    attn_mask, and no weights come back; ``last_plans`` says what was read.

        attention = RoutingAttention(512, 8, clusters=32, window=256)
        y, _ = attention(x)                    # x [batch, tokens, width]
        loss.backward(); optimizer.step()
        update_centroids(model)                # once after every optimizer.step()

    width, heads     as usual; all weights are [out, in], without biases
    kind             "causal", "bidirectional" or "cross" (reads `key`, another sequence)
    content          what the other heads do: "routing", "full", "strided", "fixed", "random", "lsh",
                     "span", "local2d", or "local" for none
    content_heads    how many heads follow it; half of them unless told. The others are local
    clusters         of a routed head
    window           keys that a head reads: in its window, and in a cluster's list
    selection        "threshold" and "nearest" are strictly causal, "balanced" is the paper's
    dropout          of attention probabilities, drawn from torch's generator
    precision        of products: "fp32", "bf16" or "auto"
    seed             names the first weights and centroids, with `layer`, which must then differ between the
                     layers of a model; unless told they are drawn by torch's generator (torch.manual_seed)
    settings         any other key of docs/configuration.md, such as {"routing.key_shift": 0}

    Centroids and thresholds are buffers: they are in ``state_dict()``, and no optimizer moves them.
    What heads saw counts once its gradient has flowed, so gradient accumulation adds up and activation
    checkpointing counts nothing twice; :func:`update_centroids` then moves them. Under
    DistributedDataParallel it adds what all ranks saw, so that they stay alike.

    Routed heads have a commitment loss (routing.commitment). With ``inject_loss`` its gradient is
    added in the backward pass, times ``auxiliary_scale``; set that to 1 / N where the loss is divided by
    N micro-batches. ``auxiliary_loss`` is its value, and carries a graph if ``inject_loss`` is off.
    """

    batch_first = True
    # What torch.nn.TransformerEncoderLayer asks for before it takes its fused path, which is not ours.
    _qkv_same_embed_dim = False
    in_proj_bias = None

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        kind: str = "causal",
        content: str = "routing",
        content_heads: Optional[int] = None,
        clusters: int = 16,
        window: int = 256,
        selection: str = "threshold",
        head_dim: Optional[int] = None,
        dropout: float = 0.0,
        precision: str = "auto",
        seed: Optional[int] = None,
        layer: int = 0,
        inject_loss: bool = True,
        batch_first: bool = True,
        settings: Optional[Mapping[str, object]] = None,
    ) -> None:
        super().__init__()
        if not batch_first:
            raise ConfigError("RoutingAttention: batch_first is False, but inputs are [batch, tokens, width]")
        if seed is not None and not 0 <= seed < 2**63:
            raise ConfigError(f"RoutingAttention: seed is {seed}, but must be 0 to 2^63 - 1, or None")
        for key in settings or {}:
            if key in _ARGUMENT_OF:
                raise ConfigError(f"RoutingAttention: settings have '{key}'; give the argument {_ARGUMENT_OF[key]}")
        if content_heads is None:
            content_heads = (heads + 1) // 2
        keys: Dict[str, object] = {
            "model.width": width,
            "model.head_dim": head_dim or 0,
            "model.attention_dropout": dropout,
            "model.initial_scale": 1.0,
            "attention.heads": heads,
            "attention.content": content,
            "attention.content_heads": content_heads,
            "local.window": window,
            "routing.clusters": clusters,
            "routing.window": window,
            "routing.selection": selection,
            "lsh.window": window,
            "random.window": window,
        }
        keys.update(settings or {})
        self._arguments: Dict[str, Any] = {
            "keys": {key: _text(value) for key, value in keys.items()},
            "kind": kind,
            "precision": precision,
            "seed": 1 if seed is None else seed,
            "layer": layer,
            "inject_loss": inject_loss,
        }
        self.embed_dim = width
        self.num_heads = heads
        self._build()
        if seed is None:
            self._draw_weights()

    def _draw_weights(self) -> None:
        """First weights and centroids by a seed from torch's generator. All other random streams keep the name of
        the layer, so that they are alike on all ranks, whose weights DistributedDataParallel makes alike."""
        given = self._arguments
        drawn = _core.AttentionLayer(
            list(given["keys"].items()), given["kind"], int(torch.randint(2**62, ())), given["layer"]
        )
        own = dict(self._layer.parameters() + self._layer.buffers())
        with torch.no_grad():
            for name, tensor in drawn.parameters() + drawn.buffers():
                own[name].copy_(tensor)

    def _build(self) -> None:
        """The compiled layer, whose own tensors become parameters and buffers of this module."""
        given = self._arguments
        self._layer = _core.AttentionLayer(
            list(given["keys"].items()), given["kind"], given["seed"], given["layer"]
        )
        self.kind: str = given["kind"]
        self.precision: str = given["precision"]
        self.inject_loss: bool = given["inject_loss"]
        self.auxiliary_scale = 1.0
        self.auxiliary_loss: Optional[Tensor] = None
        self.last_plans: List[Plan] = []
        # (module, name there, the tensor that the compiled layer computes with)
        self._own_parameters: List[Tuple[nn.Module, str, Tensor]] = []
        self._own_buffers: List[Tuple[nn.Module, str, Tensor]] = []
        for name, tensor in self._layer.parameters():
            # The very tensor of the compiled layer: a copy would not be the one that it computes with.
            tensor.__class__ = nn.Parameter
            assert isinstance(tensor, nn.Parameter)
            owner, leaf = self._owner(name), name.rpartition(".")[2]
            owner.register_parameter(leaf, tensor)
            self._own_parameters.append((owner, leaf, tensor))
        for name, tensor in self._layer.buffers():
            owner, leaf = self._owner(name), name.rpartition(".")[2]
            owner.register_buffer(leaf, tensor)
            self._own_buffers.append((owner, leaf, tensor))

    def _owner(self, name: str) -> nn.Module:
        owner: nn.Module = self
        for part in name.split(".")[:-1]:
            if part not in owner._modules:
                owner.add_module(part, nn.Module())
            owner = owner._modules[part]  # type: ignore[assignment]
        return owner

    def _replaced(self) -> List[Tuple[Tensor, Tensor]]:
        """(own, now) of every parameter in whose place another tensor stands: assigned, tied, pruned, normalised,
        parametrised, or given by functional_call. The compiled layer computes with these for one pass."""
        pairs = []
        for owner, name, own in self._own_parameters:
            # By attribute, as a layer written in Python would: functional_call and parametrisations answer there.
            now = getattr(owner, name, None)
            if now is own:
                continue
            if not isinstance(now, Tensor) or now.shape != own.shape or now.dtype != own.dtype:
                found = f"{now.dtype} {list(now.shape)}" if isinstance(now, Tensor) else type(now).__name__
                raise InputError(
                    f"RoutingAttention: {name} is {found}, but must be {own.dtype} {list(own.shape)}"
                )
            pairs.append((own, now))
        for owner, name, own in self._own_buffers:
            if getattr(owner, name, None) is not own:
                raise InputError(
                    f"RoutingAttention: the buffer {name} was replaced by another tensor, which the layer does not "
                    "know; write into the buffer instead, with copy_() or load_state_dict()"
                )
        return pairs

    # -- copies: pickle, copy.deepcopy and torch.save take the arguments and the tensors ----------------

    def __getstate__(self) -> Dict[str, Any]:
        kept = {
            name: value
            for name, value in self.__dict__.items()
            if name not in _NOT_COPIED
        }
        names = {name for name, _ in self._layer.parameters() + self._layer.buffers()}
        if strange := set(self.state_dict()) ^ names:
            raise InputError(
                f"RoutingAttention: {', '.join(sorted(strange))} were put there or taken away by pruning or "
                "parametrisation; make that permanent before the layer is copied (torch.nn.utils.prune.remove, "
                "torch.nn.utils.parametrize.remove_parametrizations, torch.nn.utils.remove_weight_norm)"
            )
        # The objects themselves: whoever copies knows them again, so weights that were tied stay tied.
        return {"attributes": kept, "tensors": dict(self.state_dict(keep_vars=True))}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        nn.Module.__init__(self)
        self._arguments = state["attributes"]["_arguments"]
        self._build()
        self.__dict__.update(state["attributes"])
        tensors = state["tensors"]
        names = [name for name, _ in self._layer.parameters()]
        for name, (owner, leaf, own) in zip(names, self._own_parameters):
            own.data = tensors[name].data  # whose memory both have; what is computed with is the parameter
            owner.register_parameter(leaf, tensors[name])
        with torch.no_grad():
            for name, buffer in self._layer.buffers():
                buffer.copy_(tensors[name])

    def _apply(self, fn: Any) -> RoutingAttention:  # type: ignore[override]
        """`.double()` and the like move weights; what centroids are, the compiled layer knows best."""
        probe = fn(torch.zeros(1))
        if probe.device.type != "cpu":
            raise InputError(f"RoutingAttention: computes on the CPU, but was to go to {probe.device}")
        if probe.dtype not in (torch.float32, torch.float64):
            raise InputError(
                f"RoutingAttention: weights are float32 or float64, not {probe.dtype}; "
                "for products of bfloat16 set precision='bf16' or use autocast"
            )
        for parameter in self.parameters():
            parameter.data = fn(parameter.data)
            if parameter.grad is not None:
                parameter.grad.data = fn(parameter.grad.data)
        # What other tensors stand in for is of their type.
        for _, _, own in self._own_parameters:
            own.data = own.data.to(probe.dtype)
        return self

    # -- the pass itself --------------------------------------------------------------------------------

    def forward(
        self,
        query: Tensor,
        key: Optional[Tensor] = None,
        value: Optional[Tensor] = None,
        key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = False,
        attn_mask: Optional[Tensor] = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        query_padding_mask: Optional[Tensor] = None,
    ) -> Tuple[Tensor, None]:
        """query [batch, tokens, width] -> (output of the same shape, None).

        key_padding_mask is bool [batch, keys], True for padding, or has -inf for padding and else 0, as
        torch.nn.TransformerEncoder of PyTorch 2 makes it; padded rows of the output are zero.
        average_attn_weights is there because torch.nn.MultiheadAttention has it; there are no weights.
        In cross-attention `key` is what is read, and the queries' own padding is query_padding_mask.
        """
        if need_weights or attn_mask is not None:
            raise InputError(
                "RoutingAttention: the pattern says what is read: there are no weights to give back and "
                "no attn_mask; pass need_weights=False, and kind='causal' for a causal mask"
            )
        if torch.jit.is_tracing():
            raise InputError(
                "RoutingAttention: cannot be traced: what a query reads depends on content, and a trace would keep "
                "the lists of this input (docs/converting.md)"
            )
        if is_causal and self.kind != "causal":
            raise InputError(f"RoutingAttention: is_causal was given, but kind is '{self.kind}'")
        key_padding_mask = _bool_mask("key_padding_mask", key_padding_mask)
        query_padding_mask = _bool_mask("query_padding_mask", query_padding_mask)
        cross = self.kind == "cross"
        if not cross and query_padding_mask is not None:
            raise InputError(
                f"RoutingAttention: query_padding_mask was given, but kind is '{self.kind}', whose queries are its "
                "keys; use key_padding_mask"
            )
        if not cross and ((key is not None and key is not query) or (value is not None and value is not query)):
            raise InputError(
                f"RoutingAttention: kind is '{self.kind}', which reads its own input, but another key or "
                "value was given; use kind='cross'"
            )
        if cross and (key is None or (value is not None and value is not key)):
            raise InputError("RoutingAttention: kind is 'cross', which needs one sequence to read as key")
        self._check_padding("key_padding_mask", key_padding_mask, key if cross and key is not None else query)
        self._check_padding("query_padding_mask", query_padding_mask, query)
        input_type = query.dtype
        precision = self.precision
        weight = next(self.parameters())
        if input_type == torch.bfloat16:
            query, precision = query.to(weight.dtype), "bf16"
            key = key.to(weight.dtype) if cross and key is not None else key
        replaced = self._replaced()
        if query.dim() == 3 and (query.numel() == 0 or (key is not None and cross and key.numel() == 0)):
            return self._read_nothing(query).to(input_type), None
        step, sample_ids = 0, None
        if self.training:
            # From torch's generator, so that a pass which checkpointing repeats draws the same again.
            step = int(torch.randint(2**61, ()))
            rank = torch.distributed.get_rank() if _is_distributed() else 0
            sample_ids = torch.arange(query.shape[0]) + (step + rank * query.shape[0])
        done = self._layer.forward(
            query,
            key if cross else None,
            query_padding_mask if cross else key_padding_mask,
            key_padding_mask if cross else None,
            sample_ids,
            step,
            precision,
            self.training,
            replaced,
        )
        self.last_plans = done.plans
        output = done.output
        if self.training:
            output = self._count(output, done)
        return (output if output.dtype == input_type else output.to(input_type)), None

    def _check_padding(self, name: str, mask: Optional[Tensor], rows: Tensor) -> None:
        if mask is not None and rows.dim() == 3 and mask.shape != rows.shape[:2]:
            raise InputError(
                f"RoutingAttention: {name} is {list(mask.shape)}, but must be {list(rows.shape[:2])}, True for padding"
            )

    def _read_nothing(self, query: Tensor) -> Tensor:
        """No tokens, or none to read: zeros, with gradients of zero."""
        self.last_plans, self.auxiliary_loss = [], None
        value, output = self.value_weight, self.output_weight
        return nn.functional.linear(nn.functional.linear(query * 0.0, value), output)  # type: ignore[arg-type]

    def _count(self, output: Tensor, done: _core.LayerForward) -> Tensor:
        """What heads saw counts when the gradient comes: once, whoever repeats the pass."""
        loss = done.auxiliary_loss
        self.auxiliary_loss = loss if not self.inject_loss or loss is None else loss.detach()
        if not output.requires_grad:
            return output
        if self.inject_loss and loss is not None and loss.requires_grad:
            output = _AddLoss.apply(output, loss, self.auxiliary_scale)
        if self._layer.is_routed:
            totals = [done.totals]
            layer = self._layer

            def count(_gradient: Tensor) -> None:
                if totals:
                    layer.add_totals(totals.pop())

            output.register_hook(count)
        return output

    def update_centroids(self) -> List[Dict[str, Any]]:
        """Moves centroids and thresholds by what was seen since the last call; once after each step.

        Returns the health of every group of routed heads (docs/routing.md): occupancy, entropies, dead
        centroids. With ranks, all of them must call. Spans of `content="span"` are clamped too.
        """
        if _is_distributed() and self._layer.is_routed:
            everyone: List[Any] = [None] * torch.distributed.get_world_size()
            torch.distributed.all_gather_object(everyone, self._layer.take_pending())
            for totals in everyone:
                self._layer.add_totals(totals)
        try:
            return self._layer.update(self._replaced())
        except InputError as error:
            # The library names its own remedy.
            raise InputError(str(error).replace("set_pending({})", "forget_seen()")) from None

    def forget_seen(self) -> None:
        """Forgets what heads saw since the last update, for a step that is skipped."""
        self._layer.take_pending()

    def extra_repr(self) -> str:
        keys = self._arguments["keys"]
        local = int(keys["attention.heads"]) - int(keys["attention.content_heads"])
        return (
            f"{self.embed_dim}, {self.num_heads}, kind={self.kind!r}, "
            f"{local} local + {keys['attention.content_heads']} {keys['attention.content']}"
        )


def _is_distributed() -> bool:
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return bool(there and torch.distributed.get_world_size() > 1)


def update_centroids(model: nn.Module) -> Dict[str, List[Dict[str, Any]]]:
    """Calls update_centroids() of every RoutingAttention in the model: once after each optimizer.step().

    Returns their statistics by module name.
    """
    if not isinstance(model, nn.Module):
        raise ConfigError(f"update_centroids: needs a torch.nn.Module, but got {type(model).__name__}")
    return {
        name: module.update_centroids()
        for name, module in model.named_modules()
        if isinstance(module, RoutingAttention)
    }
