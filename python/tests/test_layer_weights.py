"""RoutingAttention whose weights are not its own: assigned, tied, pruned, normalised, parametrised, given for a call."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Callable

import pytest
import routing_transformer as rt
import torch
from torch import nn
from torch.nn.utils import parametrize, prune, stateless


def layer(**options: object) -> rt.RoutingAttention:
    given = {"clusters": 4, "window": 8, "precision": "fp32", "seed": 1, **options}
    return rt.RoutingAttention(32, 4, **given).eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("content", ["routing", "span"])
def test_every_weight_that_is_assigned_is_computed_with(content: str) -> None:
    # A ramp that ends within the tokens, so that the span has a gradient.
    settings = {"span.limit": 16, "span.ramp": 8} if content == "span" else {}
    one, other = (layer(content=content, seed=seed, settings=settings) for seed in (1, 2))
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.05)
    x = torch.randn(2, 20, 32)
    for name, parameter in list(one.named_parameters()):
        owner = one.get_submodule(name.rpartition(".")[0])
        fresh = nn.Parameter(dict(other.named_parameters())[name].detach().clone())
        before = one(x)[0]
        setattr(owner, name.rpartition(".")[2], fresh)
        assert not torch.equal(one(x)[0], before), name
        one(x)[0].square().sum().backward()
        assert fresh.grad is not None and fresh.grad.abs().sum() > 0, name
        assert parameter.grad is None or parameter.grad.abs().sum() == 0, name
        one.zero_grad()
    with torch.no_grad():
        for (_, mine), (_, theirs) in zip(one.named_buffers(), other.named_buffers()):
            mine.copy_(theirs)
    assert torch.equal(one(x)[0], other(x)[0])
    assert torch.equal(copy.deepcopy(one)(x)[0], other(x)[0])


def test_tied_weights_are_one_and_get_both_gradients() -> None:
    one, other = layer(), layer(seed=2)
    alone = copy.deepcopy(one)
    other.query_weight = one.query_weight
    x = torch.randn(1, 20, 32)
    (one(x)[0].sum() + other(x)[0].sum()).backward()
    first = one.query_weight.grad.clone()
    alone(x)[0].sum().backward()
    assert not torch.allclose(first, alone.query_weight.grad)
    second = layer(seed=2)
    with torch.no_grad():
        second.query_weight.copy_(one.query_weight)
    second(x)[0].sum().backward()
    torch.testing.assert_close(first, alone.query_weight.grad + second.query_weight.grad)


def test_one_tensor_may_stand_for_two_weights_of_a_layer() -> None:
    # 4 heads of 8 without routed ones: queries and values have one shape.
    tied, plain = layer(content="local", content_heads=0), layer(content="local", content_heads=0)
    tied.value_weight = tied.query_weight
    x = torch.randn(1, 20, 32)
    for _ in range(2):
        with torch.no_grad():
            plain.value_weight.copy_(plain.query_weight)
        assert torch.equal(tied(x)[0], plain(x)[0])


WRITES: dict[str, Callable[[nn.Parameter], object]] = {
    "data": lambda weight: weight.data.add_(0.05),
    "init": lambda weight: nn.init.constant_(weight.data, 0.02),
    "numpy": lambda weight: weight.detach().numpy().__iadd__(0.05),
    "no_grad": lambda weight: weight.detach().add_(0.05),
}


@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_writes_that_torch_does_not_count_are_seen(how: str, precision: str) -> None:
    module, x = layer(precision=precision), torch.randn(1, 20, 32)
    for name, weight in module.named_parameters():
        before = module(x)[0]
        WRITES[how](weight)
        now = module(x)[0]
        assert not torch.equal(now, before), name
        assert torch.equal(now, copy.deepcopy(module)(x)[0]), name
        # Nor does the gradient go through what was.
        module.zero_grad(), (twin := copy.deepcopy(module)).zero_grad()
        module(x)[0].sum().backward(), twin(x)[0].sum().backward()
        for (_, mine), (other, theirs) in zip(module.named_parameters(), twin.named_parameters()):
            assert torch.equal(mine.grad, theirs.grad), f"{name}: {other}"  # type: ignore[arg-type]


def copied(module: nn.Module, how: str) -> nn.Module:
    if how == "deepcopy":
        return copy.deepcopy(module)
    if how == "pickle":
        return pickle.loads(pickle.dumps(module))
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("how", ["deepcopy", "pickle", "torch.save"])
def test_copies_of_tied_weights_are_tied(how: str) -> None:
    both = nn.ModuleList([layer(content="local", content_heads=0), layer(content="local", content_heads=0, seed=2)])
    both[0].value_weight = both[0].query_weight
    both[1].query_weight = both[0].query_weight
    both[0].query_weight.requires_grad_(False)
    twins = copied(both, how)
    assert twins[0].value_weight is twins[0].query_weight and twins[1].query_weight is twins[0].query_weight
    assert twins[0].query_weight is not both[0].query_weight and not twins[1].query_weight.requires_grad
    assert len(list(twins.parameters())) == len(list(both.parameters()))
    x = torch.randn(1, 20, 32)
    for modules in (both, twins):
        modules[0].query_weight.requires_grad_(True)
        (modules[0](x)[0].square().sum() + modules[1](x)[0].square().sum()).backward()
        torch.optim.SGD(modules.parameters(), lr=0.1).step()
    assert twins[0].value_weight is twins[1].query_weight
    for mine, theirs in zip(both, twins):
        assert torch.equal(mine(x)[0], theirs(x)[0])


@pytest.mark.parametrize("change", ["assigned", "tied", "copied"])
def test_other_weights_become_double_with_the_layer(change: str) -> None:
    module, x = layer(content="local", content_heads=0), torch.randn(1, 20, 32)
    if change == "assigned":
        module.query_weight = nn.Parameter(module.query_weight.detach() * 2)
    elif change == "tied":
        module.value_weight = module.query_weight
    else:
        module = copy.deepcopy(module)
    single = module(x)[0]
    double = module.double()(x.double())[0]
    assert double.dtype == torch.double
    torch.testing.assert_close(double.float(), single, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(module.float()(x)[0], single)


class Halved(nn.Module):
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight / 2


def pruned(module: nn.Module) -> None:
    prune.l1_unstructured(module, "output_weight", 0.5)


def normed(module: nn.Module) -> None:
    nn.utils.weight_norm(module, "output_weight")
    with torch.no_grad():
        module.output_weight_g.mul_(2.0)  # type: ignore[operator,union-attr]


def halved(module: nn.Module) -> None:
    parametrize.register_parametrization(module, "output_weight", Halved())


@pytest.mark.parametrize("change", [pruned, normed, halved])
def test_weights_made_of_others_are_computed_with(change: Callable[[nn.Module], None]) -> None:
    module, plain = layer(), layer()
    change(module)
    x = torch.randn(1, 20, 32)
    out = module(x)[0]  # pruning and norms make the weight before the pass
    with torch.no_grad():
        plain.output_weight.copy_(module.output_weight)
    assert torch.equal(out, plain(x)[0]) and not torch.equal(out, layer()(x)[0])
    out.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for n, p in module.named_parameters() if "output" in n)
    if change is not halved:  # whose copies PyTorch makes, and refuses
        with pytest.raises(rt.InputError, match="output_weight.*before the layer is copied"):
            copy.deepcopy(module)


def test_functional_call_takes_other_weights_for_one_call() -> None:
    module, x = layer(), torch.randn(1, 20, 32)
    before = module(x)[0]
    zeros = {name: torch.zeros_like(value) for name, value in module.named_parameters()}
    assert torch.equal(stateless.functional_call(module, zeros, (x,))[0], torch.zeros_like(x))
    assert torch.equal(module(x)[0], before)


def test_what_does_not_fit_is_refused_by_its_name() -> None:
    module, x = layer(), torch.randn(1, 20, 32)
    module.query_weight = nn.Parameter(torch.zeros(32, 31))
    with pytest.raises(rt.InputError, match=r"query_weight is torch.float32 \[32, 31\], but must be .*\[32, 32\]"):
        module(x)
    module = layer()
    module.group1.centroids.centroids = torch.randn(2, 4, 8)  # type: ignore[union-attr]
    with pytest.raises(rt.InputError, match="buffer centroids was replaced.*copy_"):
        module(x)


def test_first_weights_come_from_torch_s_generator_unless_a_seed_is_given() -> None:
    def weights(seed: object = None) -> torch.Tensor:
        return rt.RoutingAttention(32, 4, seed=seed).query_weight.detach()  # type: ignore[arg-type,return-value]

    torch.manual_seed(1)
    first, second = weights(), weights()
    torch.manual_seed(1)
    assert torch.equal(weights(), first) and not torch.equal(first, second)
    assert torch.equal(weights(3), weights(3)) and not torch.equal(weights(3), first)
    with pytest.raises(rt.ConfigError, match="seed is -1"):
        weights(-1)
