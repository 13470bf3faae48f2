"""What RoutingAttention makes of empty inputs, masks of other kinds and arguments that contradict each other."""

from __future__ import annotations

import pytest
import routing_transformer as rt
import torch


def layer(**options: object) -> rt.RoutingAttention:
    given = {"clusters": 4, "window": 8, "precision": "fp32", "seed": 1, **options}
    return rt.RoutingAttention(32, 4, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(2, 0, 32), (0, 5, 32)])
def test_nothing_in_nothing_out(shape: tuple) -> None:  # type: ignore[type-arg]
    module = layer()
    x = torch.zeros(shape, requires_grad=True)
    y, _ = module(x)
    assert y.shape == x.shape
    y.sum().backward()
    assert module.output_weight.grad.abs().sum() == 0
    assert module.update_centroids()[0]["tokens"] == 0


def test_queries_with_nothing_to_read_get_zeros() -> None:
    module = layer(kind="cross")
    x, nothing = torch.randn(2, 5, 32), torch.randn(2, 0, 32)
    assert torch.equal(module(x, nothing, nothing)[0], torch.zeros(2, 5, 32))


def test_masks_that_mean_the_opposite_are_refused() -> None:
    module, x = layer(), torch.randn(2, 9, 32)
    attention_mask = torch.ones(2, 9, dtype=torch.long)
    with pytest.raises(rt.InputError, match="torch.int64.*attention_mask == 0"):
        module(x, key_padding_mask=attention_mask)
    torch.testing.assert_close(module(x, key_padding_mask=attention_mask == 0)[0].shape, x.shape)
    with pytest.raises(rt.InputError, match="padding is torch.int64, but must be bool"):
        rt.plans.local(2, 1, 9, padding=attention_mask)
    with pytest.raises(rt.InputError, match=r"is \[9, 2\], but must be \[2, 9\], True for padding"):
        module(x, key_padding_mask=torch.zeros(9, 2, dtype=torch.bool))
    with pytest.raises(rt.InputError, match="use key_padding_mask"):
        module(x, query_padding_mask=attention_mask == 0)


def test_settings_do_not_contradict_arguments() -> None:
    with pytest.raises(rt.ConfigError, match="'attention.heads'; give the argument heads"):
        layer(settings={"attention.heads": 8})
    with pytest.raises(rt.ConfigError, match="batch_first is False"):
        layer(batch_first=False)
    assert layer(settings={"local.window": 4}, batch_first=True) is not None


def test_traces_are_refused() -> None:
    with pytest.raises(rt.InputError, match="cannot be traced"):
        torch.jit.trace(layer().eval(), (torch.randn(1, 9, 32),), check_trace=False)


def test_what_is_not_finite_can_be_forgotten_by_the_name_it_has_here() -> None:
    module = layer().train()
    x = torch.full((1, 9, 32), torch.nan)
    module(x)[0].sum().backward()
    with pytest.raises(rt.InputError, match=r"forget_seen\(\)"):
        module.update_centroids()
    module.forget_seen()
    module.update_centroids()
