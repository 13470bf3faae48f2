"""RoutingAttention as a torch.nn.Module: weights, centroids, copies, padding, precision."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import routing_transformer as rt
import torch
from torch import nn


def layer(**options: object) -> rt.RoutingAttention:
    given = {"clusters": 4, "window": 8, "precision": "fp32", "seed": 1, **options}
    return rt.RoutingAttention(32, 4, **given)  # type: ignore[arg-type]


def plain(module: rt.RoutingAttention, x: torch.Tensor) -> torch.Tensor:
    """The layer once more in plain PyTorch, from its state_dict and the plans that it used."""
    state = module.state_dict()
    batch, tokens, _ = x.shape

    def heads(weight: torch.Tensor) -> torch.Tensor:
        return (x @ weight.T).view(batch, tokens, -1, 8).transpose(1, 2)

    q, k, v = (heads(state[f"{name}_weight"]) for name in ("query", "key", "value"))
    local, routed = module.last_plans
    offsets = (torch.arange(tokens)[None, :] - torch.arange(tokens)[:, None]).clamp(-8, 8) + 8
    a, b = (state[f"group0_relative_{name}"][offsets] for name in ("key", "value"))
    seen = local.dense_counts() > 0
    logits = (q[:, :2] @ k.transpose(-1, -2) + torch.einsum("bhid,ijd->bhij", q[:, :2], a)) / 8**0.5
    weights = logits.masked_fill(~seen, -torch.inf).softmax(-1)
    first = weights @ v[:, :2] + torch.einsum("bhij,ijd->bhid", weights, b)
    normed = nn.functional.layer_norm(q[:, 2:], (8,), eps=1e-6)
    keys = torch.cat([torch.zeros_like(normed[:, :, :1]), normed[:, :, :-1]], 2)  # of the token before
    factor = state["group1_log_scale"].exp()[None, :, None, None] / 8**0.5
    counts = routed.dense_counts()
    logits = normed @ keys.transpose(-1, -2) * factor + counts.log()
    second = torch.nan_to_num(logits.softmax(-1)) @ v[:, 2:]
    both = torch.cat([first, second], 1).transpose(1, 2).reshape(batch, tokens, 32)
    return both @ state["output_weight"].T


def test_equals_plain_pytorch() -> None:
    module = layer().eval()
    x = torch.randn(2, 40, 32)
    torch.testing.assert_close(module(x)[0], plain(module, x), rtol=1e-4, atol=1e-5)


def test_parameters_are_torch_s_own() -> None:
    module = layer()
    names = {name for name, _ in module.named_parameters()}
    assert names == {
        "group0_relative_key", "group0_relative_value", "group1_log_scale", "query_weight", "key_weight",
        "value_weight", "output_weight",
    }  # fmt: skip
    assert all(isinstance(p, nn.Parameter) and p.is_leaf for p in module.parameters())
    assert "group1.centroids.tau" in module.state_dict()
    x = torch.randn(1, 20, 32)
    before = module.eval()(x)[0]
    with torch.no_grad():
        module.output_weight.mul_(2.0)
    torch.testing.assert_close(module(x)[0], before * 2)


def test_gradients_equal_finite_differences() -> None:
    module = layer(inject_loss=False).double().train()
    x = torch.randn(1, 7, 32, dtype=torch.double, requires_grad=True)

    def f(inputs: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(1)
        return module(inputs)[0].square().sum()

    (slope,) = torch.autograd.grad(f(x), x)
    direction = torch.randn_like(x) * 1e-6
    with torch.no_grad():
        change = (f(x + direction) - f(x - direction)) / 2
    assert float(change) == pytest.approx(float((slope * direction).sum()), rel=1e-4)


def test_centroids_move_by_what_was_seen_and_only_then() -> None:
    module = layer().train()
    start = module.state_dict()["group1.centroids.centroids"].clone()
    x = torch.randn(2, 50, 32)
    module(x)[0].sum().backward()
    assert torch.equal(module.state_dict()["group1.centroids.centroids"], start)
    (health,) = module.update_centroids()
    assert health["tokens"] == 2 * 50 * 2
    assert not torch.equal(module.state_dict()["group1.centroids.centroids"], start)
    moved = module.state_dict()["group1.centroids.centroids"].clone()
    module.update_centroids()  # nothing was seen since
    module.eval()
    module(x)
    module.update_centroids()
    assert torch.equal(module.state_dict()["group1.centroids.centroids"], moved)
    assert int(module.state_dict()["group1.centroids.updates"]) == 1


def test_a_pass_without_a_gradient_does_not_count() -> None:
    module = layer().train()
    x = torch.randn(2, 50, 32)
    with torch.no_grad():
        module(x)
    module(x)  # no backward
    assert module.update_centroids()[0]["tokens"] == 0
    module(x)[0].sum().backward()
    module.forget_seen()
    assert module.update_centroids()[0]["tokens"] == 0


def test_the_commitment_loss_reaches_the_weights_without_being_asked() -> None:
    settings = {"routing.commitment": 1.0}
    x = torch.randn(1, 30, 32)
    by_itself = layer(settings=settings).train()
    torch.manual_seed(0)
    by_itself(x)[0].sum().backward()
    by_hand = layer(settings=settings, inject_loss=False).train()
    torch.manual_seed(0)
    (by_hand(x)[0].sum() + by_hand.auxiliary_loss).backward()
    without = layer(settings=settings, inject_loss=False).train()
    torch.manual_seed(0)
    without(x)[0].sum().backward()
    torch.testing.assert_close(by_itself.query_weight.grad, by_hand.query_weight.grad)
    assert not torch.allclose(by_itself.query_weight.grad, without.query_weight.grad)
    half = layer(settings=settings).train()
    half.auxiliary_scale = 0.5
    torch.manual_seed(0)
    half(x)[0].sum().backward()
    torch.testing.assert_close(
        half.query_weight.grad, (by_hand.query_weight.grad + without.query_weight.grad) / 2
    )


@pytest.mark.parametrize("how", ["deepcopy", "pickle", "torch.save", "state_dict"])
def test_copies_compute_the_same_and_are_their_own(how: str) -> None:
    module = layer().train()
    x = torch.randn(2, 40, 32)
    module(x)[0].sum().backward()
    module.update_centroids()
    module.output_weight.requires_grad_(False)
    if how == "deepcopy":
        twin = copy.deepcopy(module)
    elif how == "pickle":
        twin = pickle.loads(pickle.dumps(module))
    elif how == "torch.save":
        file = io.BytesIO()
        torch.save(module, file)
        file.seek(0)
        twin = torch.load(file, weights_only=False)  # a module is more than weights
    else:
        twin = layer(seed=9)
        twin.load_state_dict(module.state_dict())
        twin.output_weight.requires_grad_(False)
    assert twin.training and not twin.output_weight.requires_grad
    module.eval(), twin.eval()
    before = module(x)[0]
    assert torch.equal(twin(x)[0], before)
    with torch.no_grad():
        twin.value_weight.zero_()
        twin.group1.centroids.centroids.zero_()
    assert torch.equal(module(x)[0], before)
    assert not torch.equal(twin(x)[0], before)


def test_padding_changes_nothing_and_is_zero() -> None:
    module = layer().eval()
    x = torch.randn(2, 30, 32)
    padding = torch.zeros(2, 30, dtype=torch.bool)
    padding[1, 20:] = True
    output = module(x, key_padding_mask=padding)[0]
    torch.testing.assert_close(output[1, :20], module(x[1:, :20])[0][0])
    assert not output[1, 20:].any()


def test_masks_that_are_added_to_logits_are_padding_too() -> None:
    module = layer().eval()
    x = torch.randn(1, 30, 32)
    padding = torch.zeros(1, 30, dtype=torch.bool)
    padding[0, 20:] = True
    added = torch.zeros(1, 30).masked_fill(padding, -torch.inf)
    assert torch.equal(module(x, key_padding_mask=added)[0], module(x, key_padding_mask=padding)[0])
    with pytest.raises(rt.InputError, match="key_padding_mask has numbers other than 0 and -inf"):
        module(x, key_padding_mask=torch.full((1, 30), -1.0))


def test_causal_layers_read_no_future() -> None:
    for selection in ("threshold", "nearest"):
        module = layer(selection=selection).eval()
        x = torch.randn(1, 40, 32)
        changed = x.clone()
        changed[:, 25:] = torch.randn(1, 15, 32)
        assert torch.equal(module(x)[0][:, :25], module(changed)[0][:, :25])


@pytest.mark.parametrize("content", ["routing", "full", "strided", "fixed", "random", "lsh", "span", "local"])
def test_every_pattern_learns(content: str) -> None:
    module = layer(content=content, settings={"fixed.stride": 8, "fixed.summary": 2, "span.limit": 16, "span.ramp": 4})
    module.train()
    x = torch.randn(2, 40, 32)
    module(x)[0].square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in module.parameters())
    module.update_centroids()


def test_kinds() -> None:
    x, source = torch.randn(2, 20, 32), torch.randn(2, 50, 32)
    both = layer(kind="bidirectional").eval()
    assert not torch.equal(both(x)[0][:, :5], both(x[:, :5])[0])
    cross = layer(kind="cross").eval()
    padding = torch.zeros(2, 50, dtype=torch.bool)
    padding[:, 40:] = True
    read = cross(x, source, source, key_padding_mask=padding)[0]
    assert read.shape == x.shape
    torch.testing.assert_close(read, cross(x, source[:, :40])[0])
    with pytest.raises(rt.InputError, match="kind is 'cross'"):
        cross(x)
    with pytest.raises(rt.InputError, match="use kind='cross'"):
        both(x, source, source)


def test_dtypes() -> None:
    x = torch.randn(1, 30, 32)
    module = layer().eval()
    exact = module(x)[0]
    twice = copy.deepcopy(module).double()
    torch.testing.assert_close(twice(x.double())[0].float(), exact, rtol=1e-4, atol=1e-5)
    halves = module(x.bfloat16())[0]
    assert halves.dtype == torch.bfloat16
    torch.testing.assert_close(halves.float(), exact, rtol=0.1, atol=0.05)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = module(nn.Linear(32, 32)(x))[0]
    assert mixed.dtype == torch.bfloat16
    with pytest.raises(rt.InputError, match="precision='bf16'"):
        module.bfloat16()
    with pytest.raises(rt.InputError, match="meta"):
        module.to("meta")


def test_errors_are_the_library_s() -> None:
    with pytest.raises(rt.ConfigError, match="routing.windw.*did you mean 'routing.window'"):
        layer(settings={"routing.windw": 3})
    with pytest.raises(rt.ConfigError, match="content_heads 5"):
        layer(content_heads=5)
    with pytest.raises(rt.ConfigError, match="kind is 'sideways'"):
        layer(kind="sideways")
    with pytest.raises(rt.InputError, match=r"\[batch, tokens, 32\]"):
        layer()(torch.randn(1, 5, 31))
    with pytest.raises(rt.InputError, match="attn_mask"):
        layer()(torch.randn(1, 5, 32), attn_mask=torch.zeros(5, 5))
    with pytest.raises(rt.InputError, match="is_causal was given, but kind is 'bidirectional'"):
        layer(kind="bidirectional")(torch.randn(1, 5, 32), is_causal=True)
    with pytest.raises(TypeError, match="key_paddings"):
        layer()(torch.randn(1, 5, 32), key_paddings=None)
    with pytest.raises(rt.ConfigError, match="torch.nn.Module"):
        rt.update_centroids("model")  # type: ignore[arg-type]
