"""Is the eager model ours? Our program trains a small one and evaluates it; the eager twin reads the weights and must
find the same loss. And at the sizes that are compared both have equally many weights. Run by
`measure.py check --routing PROGRAM`.
"""
import json
import math
import os
import random
import struct
import subprocess
import tempfile

import torch

import measure
import model
import sizes
from check import Failure

N = 96
CLOSE = 2e-5  # nats
STEPS = 40  # a centroid moves by a thousandth per step; thresholds and tables have moved well by then
SIZES = {"model.layers": 3, "model.width": 64, "model.feedforward_width": 128, "attention.heads": 4,
         "attention.content_heads": 2, "local.window": 16, "routing.window": 12, "routing.clusters": 4,
         "train.sequence_length": N, "train.batch_size": 4, "train.learning_rate": 0.01, "train.precision": "fp32",
         "train.eval_every": 0, "train.checkpoint_every": 0}
TWIN = model.ModelConfig(layers=3, width=64, heads=4, content_heads=2, clusters=4, window=16, routing_window=12,
                         feedforward=128)
# Forms of the model: what differs from the preset tiny-enwik8 on our side, and from TWIN.
FORMS = {
    "as tiny-enwik8": ({}, {"content_layers": 2, "add_content": True, "recency": True, "scale": 0.5}),
    "as bench train": ({"attention.content_layers": "all", "attention.add_content": "false", "local.recency": "false",
                        "local.relative": "none", "routing.scale": "1/sqrt(head_dim)"}, {"relative": False}),
    "keys in their places": ({"attention.content_layers": "all", "attention.add_content": "false",
                              "local.recency": "false", "routing.key_shift": 0, "routing.learned_scale": "false",
                              "routing.self": "only_if_alone", "routing.scale": "1/sqrt(head_dim)"},
                             {"shift": False, "learned_scale": False}),
}


def ours(program, *arguments):
    done = subprocess.run([program, *map(str, arguments), "--quiet", "--threads", "1"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{program} {arguments[0]}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def text_of(size):
    """Words in random order: enough to learn something in a few steps."""
    draw = random.Random(5)
    words = ["".join(draw.choice("abcdefghij") for _ in range(draw.randint(2, 9))) for _ in range(50)]
    return " ".join(draw.choice(words) for _ in range(size // 5)).encode()[:size]


def read_tensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    kinds = {"F32": torch.float32, "I64": torch.int64}
    return {name: torch.frombuffer(data, dtype=kinds[entry["dtype"]], offset=entry["data_offsets"][0],
                                   count=math.prod(entry["shape"])).view(entry["shape"])
            for name, entry in header.items()}


def our_name(name):
    """blocks.0.feedforward.2.weight -> layer0.feedforward.out_weight, and so on."""
    for eager, own in (("blocks.", "layer"), ("embedding.weight", "embedding"), ("norm.weight", "norm.gain"),
                       ("feedforward.0.", "feedforward.in_"), ("feedforward.2.", "feedforward.out_"),
                       ("attention.relative_", "attention.group0_relative_"),
                       ("attention.log_scale", "attention.group1_log_scale"),
                       ("centroids.means", "centroids.centroids"),
                       ("attention.centroids.", "attention.group1.centroids.")):
        name = name.replace(eager, own)
    for kind in ("query", "key", "value", "output"):
        if name.endswith("attention." + kind):
            return name + "_weight"
    return name.replace("output.weight", "output_weight").replace("output.bias", "output_bias")


def load(twin, tensors):
    left = {name for name in tensors if not name.endswith(("empty_updates", "centroids.updates"))}
    for name, value in twin.state_dict().items():
        own = our_name(name)
        if own not in left or tensors[own].shape != value.shape:
            raise Failure(f"{name} {list(value.shape)}: our model has no {own} of that shape")
        value.copy_(tensors[own])
        left.remove(own)
    if left:
        raise Failure(f"our model has weights that the eager one has not: {sorted(left)}")


@torch.no_grad()
def compare(program, folder, form, selection):
    text, run = os.path.join(folder, "text"), os.path.join(folder, f"{form}, {selection}")
    data = text_of(40000)
    with open(text, "wb") as file:
        file.write(data)
    our_changes, twin_changes = FORMS[form]
    settings = {**SIZES, **our_changes, "routing.selection": selection}
    words = [f"--set={name}={value}" for name, value in settings.items()]
    ours(program, "train", "--preset", "tiny-enwik8", "--data", text, "--out", run, "--steps", STEPS, *words)
    result = json.loads(ours(program, "eval", run, "--checkpoint", "last", "--split", "all", "--limit-bytes", 10 * N,
                             "--json"))
    twin = model.ByteModel(TWIN._replace(selection=selection, **twin_changes)).eval()
    load(twin, read_tensors(result["model"]))
    tokens = torch.tensor(list(data[:10 * N])).view(10, N)
    nats, our_nats = twin(tokens)[0].item(), result["eval_loss_nats"]
    if not abs(nats - our_nats) < CLOSE:
        raise Failure(f"{form}, {selection}: the loss of our model is {our_nats:.6f} nats, eager finds {nats:.6f}")
    print(f"{form}, {selection}: {nats:.6f} nats, ours {our_nats:.6f}")


def our_weights(program, size):
    """Of the model that `routing bench train` makes of the words of a size."""
    if size.preset:
        return json.loads(ours(program, "info", "--preset", size.preset, "--json"))["parameters"]["total"]
    numbers = size.numbers
    settings = {"model.layers": numbers["layers"], "model.width": numbers["width"],
                "model.feedforward_width": 4 * numbers["width"], "attention.heads": numbers["heads"],
                "attention.content_heads": numbers["heads"] // 2, "local.window": numbers["window"],
                "local.relative": "none", "routing.clusters": numbers["clusters"]}
    words = [f"--set={name}={value}" for name, value in settings.items()]
    return json.loads(ours(program, "info", "--json", *words))["parameters"]["total"]


def compare_weights(program, name, size):
    options = measure.parse(["train", *size.words()])
    twin = model.ByteModel(measure.model_config(options, "routing"))
    weights, our = sum(weight.numel() for weight in twin.parameters()), our_weights(program, size)
    if weights != our:
        raise Failure(f"{name}: our model has {our} weights, the eager one {weights}")
    print(f"{name}: {weights} weights, ours {our}")


def run(program):
    try:
        for name, size in sizes.SIZES.items():
            compare_weights(program, name, size)
        with tempfile.TemporaryDirectory() as folder:
            for form in FORMS:
                for selection in ("threshold", "nearest"):
                    compare(program, folder, form, selection)
    except Failure as failure:
        print(f"against our program: {failure}")
        return 1
    return 0
