"""Plans as tensors, by the formulas of their patterns."""

from __future__ import annotations

import copy
import pickle

import pytest
import routing_transformer as rt
import torch


def mask(plan: rt.Plan) -> torch.Tensor:
    return plan.dense_counts()[0, 0] > 0


def distances(tokens: int) -> torch.Tensor:
    """i - j of every query i and key j."""
    return torch.arange(tokens)[:, None] - torch.arange(tokens)[None, :]


def test_positions_by_formula() -> None:
    apart = distances(12)
    key = torch.arange(12)[None, :].expand(12, 12)
    assert torch.equal(mask(rt.plans.full(1, 1, 12)), apart >= 0)
    assert torch.equal(mask(rt.plans.local(1, 1, 12, 4)), (apart >= 0) & (apart < 4))
    both = rt.plans.local(1, 1, 12, 4, kind="bidirectional")
    assert torch.equal(mask(both), apart.abs() < 4)
    assert torch.equal(mask(rt.plans.strided(1, 1, 12, 5)), (apart >= 0) & (apart % 5 == 0))
    fixed = mask(rt.plans.fixed(1, 1, 12, 4, 1))
    assert torch.equal(fixed, (apart >= 0) & (key % 4 == 3))
    assert mask(rt.plans.full(1, 1, 3, keys=5, kind="cross")).all()


def test_lists_are_tensors_worked_out_by_hand() -> None:
    plan = rt.plans.strided(1, 1, 6, 2)  # docs/architecture.md
    assert plan.query_order.tolist() == [0, 2, 4, 1, 3, 5]
    assert plan.groups.tolist() == [[0, 3, 0, 3], [3, 6, 3, 6]]
    assert plan.unit_offsets.tolist() == [0, 2]
    made = rt.Plan(
        batch=1, heads=1, num_queries=6, num_keys=6, query_order=plan.query_order,
        key_order=plan.key_order, groups=plan.groups, unit_offsets=plan.unit_offsets,
    )  # fmt: skip
    assert made == plan
    assert "groups=2" in repr(plan)


def test_lists_that_form_no_plan_are_refused() -> None:
    numbers = torch.tensor([0, 1, 7], dtype=torch.int32)
    with pytest.raises(rt.InputError, match="7"):
        rt.Plan(
            batch=1, heads=1, num_queries=3, num_keys=3, query_order=numbers, key_order=numbers,
            groups=torch.tensor([[0, 3, 0, 3]]), unit_offsets=torch.tensor([0, 1]),
        )  # fmt: skip


def test_routing_by_plain_loops() -> None:
    q = torch.nn.functional.layer_norm(torch.randn(1, 2, 20, 4), (4,))
    centroids = torch.randn(2, 3, 4)
    thresholds = torch.full((2, 3), 0.5)
    plan = rt.plans.routing(q, centroids, thresholds=thresholds, window=20, max_memberships=3)
    counts = plan.dense_counts()
    scores = torch.einsum("hnd,hcd->hnc", q[0], centroids)
    for head in range(2):
        members = scores[head] >= 0.5
        alone = ~members.any(-1)
        members[alone, scores[head].argmax(-1)[alone]] = True
        for i in range(20):
            for j in range(20):
                expected = int((members[i] & members[j]).sum()) if j <= i else 0
                assert counts[0, head, i, j] == expected
    assert torch.equal(plan.query_choice[0].long(), scores.argmax(-1))


def test_selections_and_lookback() -> None:
    q = torch.nn.functional.layer_norm(torch.randn(2, 1, 30, 4), (4,))
    centroids = torch.randn(1, 3, 4)
    nearest = rt.plans.routing(q, centroids, selection="nearest", window=4)
    assert nearest.lookback == 4 and nearest.causal
    assert int(nearest.dense_counts().sum(-1).max()) <= 4
    balanced = rt.plans.routing(q, centroids, selection="balanced", window=10)
    sizes = balanced.groups[:, 1] - balanced.groups[:, 0]
    assert sizes.tolist() == [10] * 6


def test_padding_is_marked_as_torch_marks_it() -> None:
    padding = torch.tensor([[False, False, False, True]])
    plan = rt.plans.full(1, 1, 4, padding=padding)
    assert torch.equal(mask(plan), (distances(4) >= 0) & ~padding & ~padding.T)


def test_random_draws_are_named() -> None:
    one = rt.plans.random(1, 1, 40, 2, 8, seed=5)
    assert one == rt.plans.random(1, 1, 40, 2, 8, seed=5)
    assert one != rt.plans.random(1, 1, 40, 2, 8, seed=6)


def test_copies_are_equal() -> None:
    plan = rt.plans.local(2, 3, 50, 8)
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert copy.deepcopy(plan) == plan


def test_errors_name_the_thing() -> None:
    with pytest.raises(rt.InputError, match="number of keys"):
        rt.plans.full(1, 1, 4, kind="cross")
    with pytest.raises(rt.ConfigError, match="sideways"):
        rt.plans.full(1, 1, 4, kind="sideways")
    with pytest.raises(rt.InputError, match="centroids are"):
        rt.plans.routing(torch.randn(1, 1, 4, 4), torch.randn(3, 4))
    with pytest.raises(rt.InputError, match=r"\[1, 3, 5\]"):
        rt.plans.routing(torch.randn(1, 1, 4, 4), torch.randn(1, 3, 5))


def test_lists_may_be_whole_numbers_of_any_type() -> None:
    order, groups, offsets = [0, 1, 2, 0, 2], [[0, 3, 0, 3], [3, 5, 3, 5]], [0, 2]

    def plan(kind: torch.dtype) -> rt.Plan:
        positions = torch.tensor(order, dtype=kind)
        return rt.Plan(
            batch=1, heads=1, num_queries=3, num_keys=3, query_order=positions, key_order=positions.clone(),
            groups=torch.tensor(groups, dtype=kind), unit_offsets=torch.tensor(offsets, dtype=kind),
        )  # fmt: skip

    assert plan(torch.int64) == plan(torch.int32)
    assert plan(torch.int64).dense_counts()[0, 0].tolist() == [[2, 0, 0], [1, 1, 0], [2, 1, 2]]
    assert (plan(torch.int64) == "plan") is False
    with pytest.raises(rt.InputError, match="query_order holds Float, but must hold whole numbers"):
        plan(torch.float32)
    with pytest.raises(rt.InputError, match="none may be negative"):
        rt.plans.full(1, 2, -1)
