#!/usr/bin/python3
"""Expected values for tests/optim/golden_test.cpp, from PyTorch's own optimisers.

    /usr/bin/python3 scripts/optimizer_values.py > tests/optim/golden/optimizer_values.json

Needs Debian's python3-torch; only to make the values again, no build or test does. Everything is float64 on one thread.
The problem: least squares of tanh(inputs weight + bias) against targets, all made by a formula, without random numbers.
"""
import json
import math

import torch

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)

STEPS = 25
KEPT = (1, 2, 10, 25)  # the steps after which the parameters are written down
PEAK = 0.05
WARMUP = 5
END = 20
FINAL = 0.1
WIDTH = 512


def table(rows, columns, frequency):
    return [[round(math.sin(frequency * (1 + row * columns + column)), 6) for column in range(columns)]
            for row in range(rows)]


INPUTS = table(6, 3, 1.7)
TARGETS = table(6, 4, 0.9)
WEIGHT = table(3, 4, 2.3)
BIAS = table(1, 4, 3.1)[0]


def vaswani(step):
    """The formula with the model's width, over its own peak."""
    rate = lambda t: WIDTH**-0.5 * min(t**-0.5, t * WARMUP**-1.5)
    return rate(step) / rate(WARMUP)


def scheduler_of(kind, optimizer):
    """torch schedulers count from 0, our steps from 1."""
    lr_scheduler = torch.optim.lr_scheduler
    if kind == "constant":
        return lr_scheduler.LinearLR(optimizer, start_factor=1 / WARMUP, total_iters=WARMUP - 1)
    if kind == "cosine":
        rise = lr_scheduler.LinearLR(optimizer, start_factor=1 / WARMUP, total_iters=WARMUP - 1)
        # Cosine starts at the peak, which is the last step of the rise.
        fall = lr_scheduler.CosineAnnealingLR(optimizer, T_max=END - WARMUP, eta_min=FINAL * PEAK)
        return lr_scheduler.SequentialLR(optimizer, [rise, fall], milestones=[WARMUP - 1])
    if kind == "vaswani":
        return lr_scheduler.LambdaLR(optimizer, lambda epoch: vaswani(epoch + 1))
    if kind == "rsqrt":
        return lr_scheduler.LambdaLR(optimizer, lambda epoch: math.sqrt(WARMUP) / math.sqrt(max(epoch + 1, WARMUP)))
    raise ValueError(kind)


def run(kind, decay, clip, schedule):
    inputs, targets = torch.tensor(INPUTS), torch.tensor(TARGETS)
    weight = torch.nn.Parameter(torch.tensor(WEIGHT))
    bias = torch.nn.Parameter(torch.tensor(BIAS))
    groups = [{"params": [weight], "weight_decay": decay}, {"params": [bias], "weight_decay": 0.0}]
    maker = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind]
    optimizer = maker(groups, lr=PEAK, betas=(0.9, 0.98), eps=1e-9, foreach=False)
    scheduler = scheduler_of(schedule, optimizer)
    steps = []
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss = ((inputs @ weight + bias).tanh() - targets).square().sum()
        loss.backward()
        largest = clip if clip > 0 else math.inf
        # An infinite limit measures the norm and leaves the gradients alone.
        norm = torch.nn.utils.clip_grad_norm_([weight, bias], largest)
        rate = optimizer.param_groups[0]["lr"]
        optimizer.step()
        # CosineAnnealingLR would rise again behind its end; ours stays.
        if not (schedule == "cosine" and step >= END):
            scheduler.step()
        steps.append({"loss": loss.item(), "norm": norm.item(), "learning_rate": rate})
        if step in KEPT:
            steps[-1] |= {"weight": weight.tolist(), "bias": bias.tolist()}
    state = optimizer.state
    return {"optimizer": kind, "weight_decay": decay, "clip": clip, "schedule": schedule, "steps": steps,
            "first_moment": state[weight]["exp_avg"].tolist(), "second_moment": state[weight]["exp_avg_sq"].tolist()}


def main():
    cases = [run(kind, decay, clip, schedule)
             for kind in ("adam", "adamw")
             for decay, clip, schedule in ((0.0, 0.0, "constant"), (0.1, 0.0, "cosine"),
                                           (0.1, 0.5, "vaswani"), (0.0, 0.5, "rsqrt"))]
    print(json.dumps({"made_by": "scripts/optimizer_values.py", "torch": torch.__version__,
                      "learning_rate": PEAK, "warmup_steps": WARMUP, "decay_steps": END, "final_learning_rate": FINAL,
                      "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9,
                      "inputs": INPUTS, "targets": TARGETS, "weight": WEIGHT, "bias": BIAS})[:-1] + ',\n"cases": [')
    print(",\n".join(json.dumps(case) for case in cases) + "]}")


if __name__ == "__main__":
    main()
