#!/usr/bin/python3
"""Expected values for tests/optim/golden_test.cpp, from PyTorch's own optimisers and from Adafactor in numpy.

    /usr/bin/python3 scripts/optimizer_values.py > tests/optim/golden/optimizer_values.json

Needs Debian's python3-torch; only to make the values again, no build or test does. Everything is float64 on one thread.
Debian's PyTorch has no Adafactor; here it is the formulas of the paper (Shazeer and Stern 2018) with the choices of
tensor2tensor, in numpy, with the gradient worked out by hand.

The problem: least squares of tanh(inputs weight + bias) against targets, all made by a formula, without random numbers.
"""
import json
import math

import numpy
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


class NumpyAdafactor:
    """One parameter. `count` is tensor2tensor's global step: 0 at the first step."""

    def __init__(self, value, decay, decoupled, relative, clip):
        self.value = numpy.array(value)
        self.decay, self.decoupled, self.relative, self.clip = decay, decoupled, relative, clip
        self.count = 0
        shape = self.value.shape
        self.factored = len(shape) >= 2
        self.row, self.column = (numpy.zeros(shape[:-1]), numpy.zeros(shape[-1:])) if self.factored else (None, None)
        self.second = None if self.factored else numpy.zeros(shape)

    def step(self, gradient, rate):
        kept = 1.0 - (self.count + 1.0)**-0.8
        self.count += 1
        if not self.decoupled:
            gradient = gradient + self.decay * self.value
        square = gradient**2 + 1e-30
        if self.factored:
            self.row = kept * self.row + (1 - kept) * square.mean(axis=1)
            self.column = kept * self.column + (1 - kept) * square.mean(axis=0)
            estimate = numpy.outer(self.row, self.column) / self.row.mean()
        else:
            self.second = kept * self.second + (1 - kept) * square
            estimate = self.second
        update = gradient / numpy.sqrt(estimate)
        root_mean_square = lambda numbers: math.sqrt((numbers**2).mean())
        update = update / max(1.0, root_mean_square(update) / self.clip)
        scale = max(root_mean_square(self.value), 1e-3) if self.relative else 1.0
        shrunk = rate * self.decay * self.value if self.decoupled else 0.0
        self.value = self.value - shrunk - rate * scale * update


def share_of_peak(schedule, step):
    if schedule == "vaswani":
        return vaswani(step)
    return min(1.0, math.sqrt(WARMUP / step))


def run_adafactor(kind, decay, clip, schedule, relative, update_clip):
    inputs, targets = numpy.array(INPUTS), numpy.array(TARGETS)
    decoupled = kind == "adafactorw"
    weight = NumpyAdafactor(WEIGHT, decay, decoupled, relative, update_clip)
    bias = NumpyAdafactor(BIAS, 0.0, decoupled, relative, update_clip)
    steps = []
    for step in range(1, STEPS + 1):
        outputs = numpy.tanh(inputs @ weight.value + bias.value)
        behind_tanh = 2 * (outputs - targets) * (1 - outputs**2)
        weight_gradient, bias_gradient = inputs.T @ behind_tanh, behind_tanh.sum(axis=0)
        norm = math.sqrt((weight_gradient**2).sum() + (bias_gradient**2).sum())
        kept = min(1.0, clip / (norm + 1e-6)) if clip > 0 else 1.0
        rate = PEAK * share_of_peak(schedule, step)
        weight.step(kept * weight_gradient, rate)
        bias.step(kept * bias_gradient, rate)
        steps.append({"loss": ((outputs - targets)**2).sum(), "norm": norm, "learning_rate": rate})
        if step in KEPT:
            steps[-1] |= {"weight": weight.value.tolist(), "bias": bias.value.tolist()}
    return {"optimizer": kind, "weight_decay": decay, "clip": clip, "schedule": schedule, "relative_step": relative,
            "update_clip": update_clip, "steps": steps, "row_moment": weight.row.tolist(),
            "column_moment": weight.column.tolist(), "bias_moment": bias.second.tolist()}


def main():
    cases = [run(kind, decay, clip, schedule)
             for kind in ("adam", "adamw")
             for decay, clip, schedule in ((0.0, 0.0, "constant"), (0.1, 0.0, "cosine"),
                                           (0.1, 0.5, "vaswani"), (0.0, 0.5, "rsqrt"))]
    cases += [run_adafactor(kind, decay, clip, schedule, relative, update_clip)
              for kind in ("adafactor", "adafactorw")
              for decay, clip, schedule, relative, update_clip in ((0.0, 0.0, "rsqrt", True, 1.0),
                                                                   (0.1, 0.5, "vaswani", True, 0.3),
                                                                   (0.1, 0.0, "rsqrt", False, 1.0))]
    print(json.dumps({"made_by": "scripts/optimizer_values.py", "torch": torch.__version__,
                      "learning_rate": PEAK, "warmup_steps": WARMUP, "decay_steps": END, "final_learning_rate": FINAL,
                      "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9,
                      "inputs": INPUTS, "targets": TARGETS, "weight": WEIGHT, "bias": BIAS})[:-1] + ',\n"cases": [')
    print(",\n".join(json.dumps(case) for case in cases) + "]}")


if __name__ == "__main__":
    main()
