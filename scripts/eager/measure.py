#!/usr/bin/python3
"""Times eager PyTorch at what `routing bench` times, in one process: one JSON object per line, with the same keys.

    /usr/bin/python3 scripts/eager/measure.py attention --pattern threshold,nearest -n 8192 --precision fp32,bf16
    /usr/bin/python3 scripts/eager/measure.py train --content routing -n 8192 --precision bf16
    /usr/bin/python3 scripts/eager/measure.py train --structure public     a model built as the public implementation's
    /usr/bin/python3 scripts/eager/measure.py matmul        how fast the products are with these settings
    /usr/bin/python3 scripts/eager/measure.py check         is it right?
    /usr/bin/python3 scripts/eager/measure.py check --routing build/release/routing     is the model ours?

Needs Debian's python3-torch. Settings of the libraries come from the environment; --threads 0 leaves torch's choice.
`seconds` is the median of --repeats passes after one that is not counted. Passes stop early once they took --limit
seconds together; `repeats` says how many there were. `peak_bytes` is the peak of resident memory minus what the process
had after its imports. `gflops` counts as routing bench does: 4 dim operations per pair of query and key forward, 14 dim
forward and backward. `ratio` is seconds per pair (train: seconds) over those of the first line of its precision and pass.
Inputs are drawn as routing bench draws them: tokens around one centre for each cluster, thresholds after five updates.
bf16 is torch.autocast; attention then gets its inputs in bfloat16, as a linear layer under autocast hands them over.
"""
import argparse
import json
import math
import os
import statistics
import sys
import time
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print(f"{sys.executable} has no torch: apt-get install python3-torch, run with /usr/bin/python3", file=sys.stderr)
    sys.exit(77)  # ctest counts it as skipped

import attention
import model
import public_structure

PASSES = ("forward", "forward+backward")
UPDATES_BEFOREHAND = 5
SPREAD_IN_CLUSTER = 0.5
PATTERNS = ("threshold", "nearest", "balanced", "local", "full")


def memory(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key + ":"))


def forget_peak():
    """The next VmHWM is of what comes now."""
    try:
        with open("/proc/self/clear_refs", "w") as control:
            control.write("5")
    except OSError:
        pass  # where it is not allowed, the first case of a process is still right


def blas_library():
    with open("/proc/self/maps") as maps:
        names = {line.split()[-1] for line in maps if "blas" in line}
    return ", ".join(sorted(names)) or "unknown"


def settings():
    names = ("OPENBLAS_CORETYPE", "OMP_NUM_THREADS", "ATEN_CPU_CAPABILITY", "DNNL_MAX_CPU_ISA", "OMP_WAIT_POLICY")
    text = torch.__config__.show()
    capability = next((line.split(":")[1].strip() for line in text.splitlines() if "CPU capability" in line), "unknown")
    return {"torch": torch.__version__, "threads": torch.get_num_threads(), "capability": capability,
            "blas": blas_library(), "environment": {name: os.environ[name] for name in names if name in os.environ}}


def timed(work, options):
    """Median seconds of a pass, how many there were, and the peak of memory."""
    forget_peak()
    begin = time.perf_counter()
    work()
    warm = time.perf_counter() - begin
    seconds = []
    while len(seconds) < options.repeats and (not seconds or warm + sum(seconds) < options.limit):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": statistics.median(seconds), "repeats": len(seconds),
            "peak_bytes": max(0, memory("VmHWM") - options.start_bytes)}


class AttentionCase:
    """Inputs of one pattern, and one pass over them."""

    def __init__(self, pattern, options):
        torch.manual_seed(options.seed)
        self.pattern, self.options = pattern, options
        centers = torch.randn(options.clusters, options.heads * options.dim)
        self.q, self.k = (self.clustered(centers) for _ in range(2))
        self.v, self.gradient = (self.as_heads(torch.randn(options.n, options.heads * options.dim)) for _ in range(2))
        state = model.Centroids(options.heads, options.clusters, options.dim)
        for _ in range(UPDATES_BEFOREHAND):
            scores = attention.scores_of(self.q, state.means)
            state.seen = (self.q, scores, scores.argmax(-1))
            state.update()
        self.centroids, self.tau = state.means, state.tau

    def as_heads(self, tokens):
        return tokens.view(1, -1, self.options.heads, self.options.dim).transpose(1, 2)

    def clustered(self, centers):
        tokens = centers[torch.randint(len(centers), (self.options.n,))]
        tokens = tokens + SPREAD_IN_CLUSTER * torch.randn_like(tokens)
        return F.layer_norm(self.as_heads(tokens), (self.options.dim,), eps=1e-6)

    def output(self, q, k, v):
        options = self.options
        if self.pattern == "full":
            return attention.full_attention(q, k, v)
        if self.pattern == "local":
            return attention.local_attention(q, k, v, options.window, chunk=options.chunk)
        if self.pattern == "balanced":
            return attention.balanced_attention(q, v, self.centroids, options.window)[0]
        return attention.routing_attention(q, v, self.centroids, self.tau, self.pattern,
                                           attention.Lists(options.window, chunk=options.chunk))[0]

    def one_pass(self, bf16, backward):
        q, k, v = (t.to(torch.bfloat16 if bf16 else torch.float32).requires_grad_(backward)
                   for t in (self.q.detach(), self.k.detach(), self.v.detach()))
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16, enabled=bf16), torch.set_grad_enabled(backward):
            output = self.output(q, k, v)
        if backward:
            output.backward(self.gradient.to(output.dtype))

    def pairs(self):
        n, heads, window = self.options.n, self.options.heads, self.options.window
        if self.pattern == "full":
            return heads * n * (n + 1) // 2
        if self.pattern in ("local", "balanced"):
            size = min(window, n)
            local = size * (size + 1) // 2
            return heads * (local + (n - size) * size if self.pattern == "local" else self.options.clusters * local)
        scores = attention.scores_of(self.q, self.centroids)
        members = attention.list_members(scores, self.tau, self.pattern)
        chunks = attention.chunks_for(window, self.options.chunk)
        return int(attention.seen_in_lists(members, heads * n, window, chunks).sum())


def attention_lines(options):
    first = {}
    for pattern in options.pattern:
        case = AttentionCase(pattern, options)
        pairs = case.pairs()
        for precision in options.precision:
            for name in options.passes:
                backward = name == "forward+backward"
                line = timed(lambda: case.one_pass(precision == "bf16", backward), options)
                cost = line["seconds"] / pairs
                yield {"bench": "attention", "pattern": pattern, "n": options.n, "heads": options.heads,
                       "dim": options.dim, "window": options.window, "clusters": options.clusters,
                       "precision": precision, "pass": name, "pairs": pairs, **line,
                       "gflops": pairs * options.dim * (14 if backward else 4) / line["seconds"] / 1e9,
                       "tokens_per_second": options.n / line["seconds"],
                       "ratio": cost / first.setdefault((precision, name), cost)}


def model_config(options, content):
    return model.ModelConfig(layers=options.layers, width=options.width, heads=options.heads, content=content,
                             content_heads=options.content_heads or (options.heads + 1) // 2,
                             content_layers=options.content_layers, add_content=options.add_content,
                             clusters=options.clusters, window=options.window, selection=options.selection,
                             feedforward=4 * options.width, relative=options.relative, recency=options.recency,
                             scale=options.scale, chunk=options.chunk)


def training_of(options, config, bf16):
    if options.structure == "public":
        return public_structure.Training(config, options.n, bf16)
    return model.Training(config, bf16)


def train_lines(options):
    first = {}
    for content in options.content:
        config = model_config(options, content)
        for precision in options.precision:
            torch.manual_seed(options.seed)
            training = training_of(options, config, bf16=precision == "bf16")
            tokens = torch.randint(0, config.vocabulary, (options.batch, options.n))
            parameters = sum(p.numel() for p in training.model.parameters())
            line = timed(lambda: training.step(tokens), options)
            del training
            yield {"bench": "train", "pattern": content, "content": content, "structure": options.structure,
                   "n": options.n, "batch": options.batch, "layers": options.layers, "width": options.width,
                   "heads": options.heads, "dim": config.dim, "window": options.window,
                   "clusters": options.clusters if content == "routing" else 0, "precision": precision, "pass": "step",
                   "parameters": parameters, "pairs": None, **line, "gflops": None,
                   "tokens_per_second": options.batch * options.n / line["seconds"],
                   "ratio": line["seconds"] / first.setdefault(precision, line["seconds"])}


def matmul_lines(options):
    """Square, as in dense layers, and in batches, as in attention."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    q, k = torch.randn(64, 256, 64), torch.randn(64, 64, 512)
    square = timed(lambda: torch.matmul(a, b), options)["seconds"]
    batch = timed(lambda: torch.matmul(q, k), options)["seconds"]
    yield {"bench": "matmul", "square_gflops": 2 * 1024**3 / square / 1e9,
           "batch_gflops": 2 * 64 * 256 * 64 * 512 / batch / 1e9}


def words(text):
    return text.split(",")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", choices=["attention", "train", "matmul", "check"])
    parser.add_argument("--pattern", type=words, default=list(PATTERNS), help="of attention: " + ",".join(PATTERNS))
    parser.add_argument("--content", type=words, default=["routing"], help="of train: routing,local,full")
    parser.add_argument("--precision", type=words, default=["fp32", "bf16"])
    parser.add_argument("--pass", dest="passes", type=words, default=["forward+backward"], help=",".join(PASSES))
    parser.add_argument("--selection", choices=["threshold", "nearest"], default="threshold", help="of train")
    for name, value in (("-n", 8192), ("--heads", 8), ("--dim", 64), ("--window", 256), ("--clusters", 32),
                        ("--layers", 6), ("--width", 512), ("--batch", 1), ("--repeats", 5), ("--threads", 0),
                        ("--seed", 1)):
        parser.add_argument(name, type=int, default=value)
    parser.add_argument("--structure", choices=["ours", "public"], default="ours",
                        help="of train: our model, or one built as the public implementation's")
    parser.add_argument("--content-heads", type=int, default=0, help="of train: half the heads unless given")
    parser.add_argument("--content-layers", type=int, default=0, help="of train: so many top layers; all unless given")
    parser.add_argument("--add-content", action="store_true", help="of train: content heads join the local ones")
    parser.add_argument("--relative", action="store_true", help="of train: local heads with relative tables")
    parser.add_argument("--recency", action="store_true", help="of train: local heads start near-sighted")
    parser.add_argument("--scale", type=float, help="of train: of routed logits; 1 / sqrt(dim) unless given")
    parser.add_argument("--chunk", type=int, help="queries that are attended together; the window unless given")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which no further pass begins")
    parser.add_argument("--routing", help="of check: our program, to compare the model with")
    options = parser.parse_args(arguments)
    for given, known in ((options.pattern, PATTERNS), (options.passes, PASSES), (options.precision, ("fp32", "bf16")),
                         (options.content, ("routing", "local", "full"))):
        for word in given:
            if word not in known:
                parser.error(f"'{word}' is not one of {', '.join(known)}")
    if options.add_content and options.content != ["routing"]:
        parser.error("--add-content is for --content routing")
    for name in ("n", "heads", "dim", "window", "clusters", "layers", "width", "batch", "repeats"):
        if getattr(options, name) < 1:
            parser.error(f"{name} is {getattr(options, name)}, but must be at least 1")
    return options


def main(arguments):
    options = parse(arguments)
    warnings.filterwarnings("ignore", message="scatter_reduce")
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    if options.bench == "check":
        import against_ours
        import check
        return against_ours.run(options.routing) if options.routing else check.run()
    options.start_bytes = memory("VmRSS")
    lines = {"attention": attention_lines, "train": train_lines, "matmul": matmul_lines}[options.bench](options)
    for line in lines:
        line.update(implementation="eager", chunk=options.chunk, settings=settings())
        print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
