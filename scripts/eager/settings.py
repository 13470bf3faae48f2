"""How eager PyTorch is run: processes, their environment, the settings that make it fastest. Standard library only."""
import json
import os
import subprocess
import sys

MEASURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "measure.py")
OWN_VARIABLES = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTO_", "MKL_", "ATEN_", "DNNL_", "ONEDNN_", "MALLOC_",
                 "GLIBC_TUNABLES", "LD_PRELOAD", "ROUTING_")


class Failed(Exception):
    pass


def note(text):
    print(text, file=sys.stderr, flush=True)


def plain_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}


def run(command, environment, timeout=1800):
    """The JSON objects that a command prints, one a line."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed(f"no result after {timeout} s: {' '.join(command)}")
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}")
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failed(f"exit {done.returncode}: {' '.join(command)}: {last}")
    try:
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    except json.JSONDecodeError as error:
        raise Failed(f"not JSON ({error}): {' '.join(command)}")


def case_shape(options, bench):
    shape = ["-n", options.n, "--heads", options.heads]
    if bench == "attention":
        shape += ["--dim", options.dim, "--window", options.window, "--clusters", options.clusters]
    else:
        shape += ["--layers", options.layers, "--width", options.width]
    return [str(word) for word in shape]


def eager_command(options, case, repeats):
    bench, pattern, precision = case
    what = ["--pattern", pattern] if bench == "attention" else \
        ["--content", pattern, "--window", str(options.window), "--clusters", str(options.clusters)]
    return [options.python, MEASURE, bench, *what, "--precision", precision, *case_shape(options, bench),
            "--repeats", str(repeats), "--limit", str(options.slow)]


class Settings:
    """How eager is run at its best: found once, before the rounds."""

    def __init__(self, options):
        self.load = os.getloadavg()[0]  # before we add to it
        self.cores = len(os.sched_getaffinity(0))
        self.environment = {"OMP_NUM_THREADS": str(self.cores)}
        with open("/proc/cpuinfo") as cpuinfo:
            flags = next((line.split() for line in cpuinfo if line.startswith("flags")), [])
        if "avx512f" in flags and "avx512dq" in flags:
            self.environment["ATEN_CPU_CAPABILITY"] = "avx512"
        core_types = [None] + (["Haswell", "Zen"] if "avx2" in flags else [])
        if "avx512f" in flags:
            core_types += ["SkylakeX"] + (["Cooperlake"] if "avx512_bf16" in flags else [])
        self.core_rates = {name or "as detected": self.matmul_rate(options, name) for name in core_types}
        best = max(self.core_rates, key=self.core_rates.get)
        if best != "as detected":
            self.environment["OPENBLAS_CORETYPE"] = best
        sizes = sorted({max(1, options.window // part) for part in (1, 2, 4)}, reverse=True)
        self.chunk_seconds = {size: self.chunk_time(options, size) for size in sizes}
        self.chunk = min(self.chunk_seconds, key=self.chunk_seconds.get)

    def whole_environment(self, **more):
        return {**plain_environment(), **self.environment, **more}

    def matmul_rate(self, options, core_type):
        more = {"OPENBLAS_CORETYPE": core_type} if core_type else {}
        command = [options.python, MEASURE, "matmul", "--threads", str(self.cores), "--repeats", "9"]
        line = run(command, self.whole_environment(**more))[-1]
        note(f"trial: OpenBLAS core type {core_type or 'as detected'}: {line['square_gflops']:.0f} GFLOP/s square, "
             f"{line['batch_gflops']:.0f} in batches")
        return (line["square_gflops"] * line["batch_gflops"])**0.5

    def chunk_time(self, options, size):
        command = eager_command(options, ("attention", "nearest", "fp32"), 3) + ["--threads", str(self.cores)]
        seconds = run(command + ["--chunk", str(size)], self.whole_environment())[-1]["seconds"]
        note(f"trial: {size} queries at once: {seconds:.3f} s")
        return seconds

    def text(self):
        words = [f"{name}={value}" for name, value in sorted(self.environment.items())]
        return " ".join(words + [f"torch.set_num_threads({self.cores})", f"chunks of {self.chunk} queries"])
