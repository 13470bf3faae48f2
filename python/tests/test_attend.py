"""attend() against plain formulas, finite differences and the C++ library's own bits."""

from __future__ import annotations

import os
import pathlib
import subprocess
import threading

import numpy as np
import pytest
import routing_transformer as rt
import torch
from conftest import ROOT


def vectors(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype)


def dense(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: rt.Plan) -> torch.Tensor:
    """One softmax over all keys, a key that counts c times standing there c times."""
    counts = plan.dense_counts().to(q.dtype)
    logits = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + counts.log()
    return torch.nan_to_num(logits.softmax(-1)) @ v


def plans_of(q: torch.Tensor) -> dict[str, rt.Plan]:
    batch, heads, tokens, dim = q.shape
    centroids = vectors(heads, 4, dim)
    return {
        "local": rt.plans.local(batch, heads, tokens, 7),
        "block": rt.plans.local(batch, heads, tokens, 5, form="block", kind="bidirectional"),
        "strided": rt.plans.strided(batch, heads, tokens, 4),
        "routing": rt.plans.routing(q.float(), centroids, window=6),
        "balanced": rt.plans.routing(q.float(), centroids, window=6, selection="balanced"),
        "lsh": rt.plans.lsh(q.float(), buckets=4, rounds=2, window=8, self_rule="allowed"),
    }


@pytest.mark.parametrize("name", ["local", "block", "strided", "routing", "balanced", "lsh"])
def test_equals_the_dense_formula(name: str) -> None:
    q, k, v = vectors(2, 3, 33, 8), vectors(2, 3, 33, 8), vectors(2, 3, 33, 5)
    plan = plans_of(q)[name]
    output = rt.attend(q, k, v, plan)
    torch.testing.assert_close(output, dense(q, k, v, plan), rtol=1e-5, atol=1e-5)


def test_derivatives_equal_finite_differences() -> None:
    q, k, v = (vectors(1, 2, 9, 4, dtype=torch.double).requires_grad_() for _ in range(3))
    table_k, table_v = (vectors(7, 4, dtype=torch.double).requires_grad_() for _ in range(2))
    for plan in plans_of(q.detach()).values():
        assert torch.autograd.gradcheck(
            lambda *t: rt.attend(  # noqa: B023
                *t[:3], plan, relative="true_offset", relative_key=t[3], relative_value=t[4]  # noqa: B023
            ),
            (q, k, v, table_k, table_v),
        )


def test_lse_and_mean() -> None:
    q, k, v = (vectors(1, 1, 12, 4) for _ in range(3))
    plan = rt.plans.full(1, 1, 12)
    _, lse = rt.attend(q, k, v, plan, return_lse=True)
    logits = (q @ k.transpose(-1, -2) / 2.0).masked_fill(plan.dense_counts() == 0, -torch.inf)
    torch.testing.assert_close(lse, logits.logsumexp(-1))
    doubled = rt.attend(q, k, v, plan, merge="mean", merge_eps=1.0)
    torch.testing.assert_close(doubled, rt.attend(q, k, v, plan) / 2)


def test_queries_without_numbers_read_all_keys_alike() -> None:
    nothing, v = vectors(1, 2, 3, 0), vectors(1, 2, 3, 4)
    output = rt.attend(nothing, nothing, v, rt.plans.full(1, 2, 3))
    torch.testing.assert_close(output[:, :, 2], v.mean(2))


def test_recency_lowers_distant_logits() -> None:
    q, k, v = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4), vectors(1, 2, 3, 4)
    output = rt.attend(q, k, v, rt.plans.full(1, 2, 3), recency=torch.tensor([0.0, 0.5]))
    torch.testing.assert_close(output[0, 0, 2], v[0, 0].mean(0))
    weights = torch.tensor([-1.0, -0.5, 0.0]).softmax(0)
    torch.testing.assert_close(output[0, 1, 2], weights @ v[0, 1])


def test_any_strides_without_a_copy() -> None:
    rows = vectors(2, 40, 3, 8).requires_grad_()  # as projections leave heads: tokens first
    q = rows.transpose(1, 2)
    plan = rt.plans.local(2, 3, 40, 7)
    straight = rt.attend(q.contiguous(), q.contiguous(), q.contiguous(), plan)
    assert torch.equal(rt.attend(q, q, q, plan), straight)
    held = rt._core.attend(q, q, q, plan, 1.0, "lse", 0.0, "none", None, None, None, 0.0, 0, "fp32")
    assert held[0].grad_fn is not None


def test_bfloat16_rounds_factors_only() -> None:
    q, k, v = (vectors(1, 2, 200, 16) for _ in range(3))
    plan = rt.plans.local(1, 2, 200, 64)
    exact = rt.attend(q, k, v, plan)
    rounded = rt.attend(q, k, v, plan, precision="bf16")
    torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0.05)
    halves = rt.attend(q.bfloat16(), k.bfloat16(), v.bfloat16(), plan)
    assert halves.dtype == torch.bfloat16
    torch.testing.assert_close(halves.float(), exact, rtol=0.05, atol=0.05)


def test_dropout_is_torch_s_to_seed_and_keeps_the_mean() -> None:
    q, k, v = vectors(1, 4, 64, 8), vectors(1, 4, 64, 8), torch.ones(1, 4, 64, 8)
    plan = rt.plans.local(1, 4, 64, 32)
    torch.manual_seed(3)
    one = rt.attend(q, k, v, plan, dropout=0.5)
    other = rt.attend(q, k, v, plan, dropout=0.5)
    torch.manual_seed(3)
    assert torch.equal(one, rt.attend(q, k, v, plan, dropout=0.5))
    assert not torch.equal(one, other)
    assert abs(float(one.mean()) - 1.0) < 0.2


def test_bits_do_not_depend_on_threads() -> None:
    q, k, v = (vectors(2, 4, 300, 16) for _ in range(3))
    plan = plans_of(q)["routing"]
    before = rt.num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            rt.set_num_threads(threads)
            results.append(rt.attend(q, k, v, plan))
        assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
    finally:
        rt.set_num_threads(before)


def test_python_threads_run_beside_each_other() -> None:
    q, k, v = (vectors(1, 2, 256, 16) for _ in range(3))
    plan = rt.plans.local(1, 2, 256, 64)
    expected = rt.attend(q, k, v, plan)
    results: list[torch.Tensor] = []
    workers = [threading.Thread(target=lambda: results.append(rt.attend(q, k, v, plan))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 4 and all(torch.equal(result, expected) for result in results)


def test_errors_are_python_s_with_the_library_s_words() -> None:
    q, k, v = (vectors(1, 2, 8, 4) for _ in range(3))
    plan = rt.plans.local(1, 2, 8, 4)
    with pytest.raises(rt.InputError, match="9"):
        rt.attend(vectors(1, 2, 9, 4), k, v, plan)
    with pytest.raises(ValueError, match="merge.*'sum'"):
        rt.attend(q, k, v, plan, merge="sum")
    with pytest.raises(rt.Error, match="window"):
        rt.plans.local(1, 2, 8, 0)
    for shape in ((), (8,), (2, 8, 4)):
        with pytest.raises(rt.InputError, match=f"q has {len(shape)} dimensions"):
            rt.attend(torch.zeros(shape), torch.zeros(shape), torch.zeros(shape), plan)
    with pytest.raises(TypeError):
        rt.attend(q.numpy(), k, v, plan)
    with pytest.raises(rt.ConfigError, match="precision"):
        rt.attend(q, k, v, plan, precision="fp8")


def test_operation_is_registered_with_torch() -> None:
    assert torch.ops.routing.attend.default._schema.name == "routing::attend"


def test_bits_are_those_of_the_cpp_library(tmp_path: pathlib.Path) -> None:
    """The same numbers through a program that knows no Python (tests/python/attend_file.cpp)."""
    program = os.environ.get("ATTEND_FILE_PROGRAM", str(ROOT / "build" / "release" / "tests" / "attend_file"))
    if not pathlib.Path(program).exists():
        pytest.skip("attend_file was not built")
    batch, heads, tokens, dim, window = 2, 3, 257, 16, 40
    q, k, v, gradient = (vectors(batch, heads, tokens, dim).requires_grad_() for _ in range(4))
    given, answer = tmp_path / "given", tmp_path / "answer"
    given.write_bytes(b"".join(t.detach().numpy().tobytes() for t in (q, k, v, gradient)))
    sizes = [str(n) for n in (batch, heads, tokens, dim, window)]
    subprocess.run([program, str(given), str(answer), *sizes], check=True)
    output = rt.attend(q, k, v, rt.plans.local(batch, heads, tokens, window))
    output.backward(gradient.detach())
    ours = [t.detach().numpy() for t in (output, q.grad, k.grad, v.grad) if t is not None]
    theirs = np.fromfile(answer, dtype=np.float32).reshape(4, batch, heads, tokens, dim)
    for mine, other in zip(ours, theirs):
        np.testing.assert_array_equal(mine, other)
