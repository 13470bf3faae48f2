#!/usr/bin/env python3
"""The logits of a trained model from its model.safetensors alone, in NumPy and float64.

    routing eval RUN --split test --nats nats.jsonl             # what every token cost
    examples/numpy_logits.py MODEL nats.jsonl                   # the same here, and how far apart
    examples/numpy_logits.py MODEL nats.jsonl --logits out.npz  # and the logits of every window

MODEL is a model.safetensors or a folder that holds one. The second file has a line of JSON for each
window: "tokens", "source" for an encoder-decoder, and "nats" if there is something to compare with.
docs/model-format.md says in words what is computed here; the parts have its headings.
Nothing here is fast: every list of keys is looked at as a whole.
"""
import argparse
import functools
import json
import math
import struct
import tomllib
from pathlib import Path

import numpy as np
from numpy_attention import head_groups, head_output, layer_norm, stream_key


# --- The file -----------------------------------------------------------------------------------
def read_model(path: Path) -> tuple[dict[str, np.ndarray], dict]:
    """Tensors by name, and the configuration from the metadata."""
    file = path / "model.safetensors" if path.is_dir() else path
    if not file.exists():
        raise SystemExit(f"{file}: is not there; of a run name a checkpoint: RUN/checkpoints/step-…")
    data = file.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, about in header.items():
        begin, end = (8 + size + offset for offset in about["data_offsets"])
        numbers = np.frombuffer(data[begin:end], {"F32": "<f4", "I64": "<i8"}[about["dtype"]])
        tensors[name] = numbers.reshape(about["shape"]).astype(np.float64)
    return tensors, tomllib.loads(metadata["config"])


# --- The model ----------------------------------------------------------------------------------
def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def sinusoids(places: np.ndarray, width: int) -> np.ndarray:
    angle = places[:, None] / 10000.0 ** (np.arange(width) // 2 * 2 / width)
    return np.where(np.arange(width) % 2 == 0, np.sin(angle), np.cos(angle))


class Model:
    """A model as its file has it. One that remembers is given the windows of a text in turn."""

    def __init__(self, path: Path) -> None:
        self.tensors, self.config = read_model(path)
        self.model, memory = self.config["model"], self.config["memory"]
        if memory["compressed"] > 0 and memory["compression"] == "most_used":
            raise SystemExit("memory.compression = most_used is not known to this script")
        rotary = [name for name, part in self.config.items()
                  if isinstance(part, dict) and part.get("rotary", "none") != "none"]
        if rotary or self.model["feedforward"] == "gelu":
            raise SystemExit("models with rotary heads or gelu are not known to this script")
        self.memory_length = self.config["eval"]["memory"] or memory["length"]
        self.width = self.model["width"]
        nothing = np.zeros((0, self.width))
        self.past = [(nothing, nothing)] * self.model["layers"]  # compressed rows, plain rows
        self.last_token: int | None = None
        self.inner = self.model["embedding_width"] or self.width

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        return layer_norm(x, self.tensors[name + ".gain"], self.tensors[name + ".bias"])

    def dense(self, name: str, x: np.ndarray) -> np.ndarray:
        """x W' + b: weights are [out, in]. Without the weight x itself."""
        weight = self.tensors.get(name + "_weight")
        return x if weight is None else x @ weight.T + self.tensors.get(name + "_bias", 0)

    def attention(self, name: str, x: np.ndarray, source: np.ndarray, layer: int,
                  kind: str) -> np.ndarray:
        """Rows x read rows of source: x itself, or what an encoder made of a source."""
        heads = self.config["attention"]["heads"]
        dim = self.model["head_dim"] or self.model["width"] // heads
        part = "decoder cross" if kind == "cross" else kind + " self"
        place = {"key": stream_key(self.config["train"]["seed"], part, layer), "heads": heads,
                 "image_width": self.model["image_width"]}
        # [token, head, number]. Heads of shared queries and keys have no rows in the key weight.
        query, key, value = (
            (rows @ self.tensors.get(f"{name}.{side}_weight", np.zeros((0, self.width))).T
             ).reshape(len(rows), -1, dim)
            for side, rows in (("query", x), ("key", source), ("value", source)))
        outputs: list[np.ndarray] = []
        tables: dict[str, np.ndarray] = {}
        key_head = 0
        for number, group in enumerate(head_groups(self.config, layer, kind)):
            begin = f"{name}.group{number}"
            own = {end[len(begin) + 1:]: tensor for end, tensor in self.tensors.items()
                   if end.startswith((begin + ".", begin + "_"))}
            if group["pattern"] == "span":  # one head each; the first has the tables of all
                own = tables = {**tables, **own}
            for head in range(group["heads"]):
                own_head = group["first_head"] + head
                q, v = query[:, own_head], value[:, own_head]
                k = key[:, key_head] if group["has_key_rows"] else q
                outputs.append(head_output(group, head, (q, k, v), own, place))
                key_head += group["has_key_rows"]
        outputs = [self.dense(f"{name}.head_mix", output) for output in outputs]
        return self.dense(f"{name}.output", np.concatenate(outputs, axis=1))

    def block(self, name: str, x: np.ndarray, layer: int, kind: str,
              source: np.ndarray | None = None) -> np.ndarray:
        """Attention, in a decoder with a source cross-attention, and the feed-forward layer."""
        past = np.concatenate(self.past[layer]) if kind == "decoder" else x[:0]

        def read_self(rows: np.ndarray) -> np.ndarray:
            pre = self.model["norm"] == "pre"
            before = self.norm(name + ".attention_norm", past) if pre else past
            rows = np.concatenate([before, rows])
            return self.attention(name + ".attention", rows, rows, layer, kind)[len(past):]

        def feedforward(rows: np.ndarray) -> np.ndarray:
            value = self.dense(name + ".feedforward.in", rows)
            if self.model["feedforward"] == "relu":
                return self.dense(name + ".feedforward.out", np.maximum(value, 0))
            gate = self.dense(name + ".feedforward.gate", rows)
            inner = math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)
            return self.dense(name + ".feedforward.out", gate / 2 * (1 + np.tanh(inner)) * value)

        parts = [("attention", read_self), ("feedforward", feedforward)]
        if source is not None:
            parts.insert(1, ("cross", functools.partial(self.attention, name + ".cross_attention",
                                                        source=source, layer=layer, kind="cross")))
        if self.memory_length and kind == "decoder":
            self.past[layer] = self.remembered(name, layer, x)
        for part, function in parts:
            norm = f"{name}.{part}_norm"
            x = x + function(self.norm(norm, x)) if self.model["norm"] == "pre" else \
                self.norm(norm, x + function(x))
        return x

    def remembered(self, name: str, layer: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the layer keeps of its inputs and of what it kept before."""
        compressed, rows = self.past[layer][0], np.concatenate([self.past[layer][1], x])
        memory, leaving = self.config["memory"], max(0, len(rows) - self.memory_length)
        if memory["compressed"] > 0:
            leaving -= leaving % memory["rate"]
            left = rows[:leaving].reshape(-1, memory["rate"], x.shape[1])
            made = left.mean(axis=1) if memory["compression"] == "mean" else \
                left.max(axis=1) if memory["compression"] == "max" else \
                left.reshape(len(left), -1) @ self.tensors[f"{name}.compression_weight"].T
            compressed = np.concatenate([compressed, made])[-memory["compressed"]:]
        return compressed, rows[leaving:]

    def bands(self, wanted: str) -> list[tuple[int, int]]:
        """First and last + 1 id of each band of the vocabulary; one band without `wanted`."""
        text = self.model["bands"] if self.model[wanted] else ""
        ends = [int(end) for end in text.split(",") if end]
        return list(zip([0, *ends], [*ends, self.model["vocab_size"]]))

    def embedding(self, tokens: list[int], owner: str = "") -> np.ndarray:
        """Tokens as vectors: behind the start symbol, unless an encoder reads them."""
        model, tensors, whole = self.model, self.tensors, owner == "source."
        start = model["vocab_size"] if model["start_symbol"] == "own" else 0
        before = start if self.last_token is None else self.last_token
        ids = np.array(tokens if whole else [before, *tokens[:-1]])
        places = np.arange(len(ids))
        if model["image_height"] > 0:
            channel, pixel = places % 3, places // 3
            ids += channel * model["vocab_size"]
            ids[0] = 3 * model["vocab_size"]  # the start symbol of images
            row, column = pixel // model["image_width"], pixel % model["image_width"]
            x = tensors["embedding"][ids] + tensors["row_positions"][3 * row + channel] + \
                tensors["column_positions"][3 * column + channel]
            return self.dense("embedding_out", x * math.sqrt(self.inner))
        x = np.zeros((len(ids), self.inner))
        for number, (first, end) in enumerate(self.bands("adaptive_input")):
            table = tensors[owner + (f"embedding_band{number}" if number else "embedding")]
            row = ids - first
            if number == 0 and start > 0:
                row = np.where(ids == start, len(table) - 1, row)
                mine = (ids < end) | (ids == start)
            else:
                mine = (ids >= first) & (ids < end)
            projection = tensors.get(f"{owner}embedding_projection{number}", np.eye(self.inner))
            x[mine] = table[row[mine]] @ projection.T
        x = self.dense(owner + "out" if owner else "embedding_out", x)
        if model["positions"] == "sinusoidal":
            parts = [(places, self.width)]
            if whole:  # half by places from the start, half from the end
                half = self.width // 2
                parts = [(places, half), (places[::-1], self.width - half)]
            return x * math.sqrt(self.width) + np.concatenate(
                [sinusoids(*part) for part in parts], axis=1)
        if model["positions"] == "learned":
            return x + tensors[owner + "positions"][places]
        if model["positions"] == "factored":
            stride = model["position_stride"]
            return x + tensors[owner + "position_cells"][places // stride] + \
                tensors[owner + "position_places"][places % stride]
        return x

    def output(self, x: np.ndarray, owner: str) -> np.ndarray:
        """Logits; of a vocabulary in bands logarithms of probabilities."""
        tensors, tied = self.tensors, self.model["tied_output"]
        x, bias = self.dense("output_in", x), tensors["output_bias"]
        bands = self.bands("adaptive_output")
        words, symbols = bands[0][1], len(bands) - 1  # the first table: its words, then the symbols
        table = tensors[owner + "embedding" if tied else "output_weight"][:words + symbols]
        first = x @ table.T + bias[:words + symbols]
        if symbols == 0:
            return first
        first = log_softmax(first)
        result = [first[:, :words]]
        for number, (begin, end) in enumerate(bands[1:], start=1):
            table = tensors[f"{owner}embedding_band{number}" if tied else f"output_band{number}"]
            narrowed = x @ tensors[f"{owner}embedding_projection{number}"] if tied else \
                x @ tensors[f"output_projection{number}"].T
            inside = log_softmax(narrowed @ table.T + bias[begin + symbols:end + symbols])
            result.append(inside + first[:, words + number - 1:words + number])
        return np.concatenate(result, axis=1)

    def logits(self, tokens: list[int], source: list[int] | None = None) -> np.ndarray:
        """[tokens, vocabulary]; row i is the prediction of tokens[i] from those before it."""
        pre, memory = self.model["norm"] == "pre", None
        if source is not None:
            memory = self.embedding(source, "source.")
            for layer in range(self.model["encoder_layers"]):
                memory = self.block(f"encoder{layer}", memory, layer, "encoder")
            memory = self.norm("encoder_norm", memory) if pre else memory
        owner, layers, last = ("", "layer", "last_norm") if source is None else \
            ("target.", "decoder", "decoder_norm")
        x = self.embedding(tokens, owner)
        for layer in range(self.model["layers"]):
            x = self.block(f"{layers}{layer}", x, layer, "decoder", memory)
        self.last_token = tokens[-1] if self.memory_length else None
        return self.output(self.norm(last, x) if pre else x, owner)

    def nats(self, tokens: list[int], source: list[int] | None = None) -> np.ndarray:
        """-ln p of every token."""
        return -log_softmax(self.logits(tokens, source))[np.arange(len(tokens)), tokens]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path, help="a model.safetensors, or a folder that holds one")
    parser.add_argument("windows", type=Path, help="what `routing eval --nats FILE` wrote")
    parser.add_argument("--logits", type=Path, help="an .npz for the logits of every window")
    arguments = parser.parse_args()
    model = Model(arguments.model)
    logits: list[np.ndarray] = []
    scored: list[float] = []
    differences: list[float] = []
    for line in arguments.windows.read_text().splitlines():
        window = json.loads(line)
        tokens = window["tokens"]
        logits.append(model.logits(tokens, window.get("source")))
        nats = -log_softmax(logits[-1])[np.arange(len(tokens)), tokens]
        scored.extend(nats[window.get("scored_from", 0):])
        if "nats" in window:
            differences.extend(np.abs(nats - window["nats"]))
    if not scored:
        raise SystemExit(f"{arguments.windows}: holds no windows")
    if arguments.logits:
        np.savez(arguments.logits, *logits)
    answer = {"tokens": len(scored), "nats_per_token": sum(scored) / len(scored)}
    if differences:
        answer["largest_difference"] = max(differences)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
