"""How the sides are run: processes, their environment, the settings that make eager fastest. Standard library only."""
import json
import os
import subprocess
import sys
from typing import NamedTuple

MEASURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "measure.py")
OWN_VARIABLES = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTO_", "MKL_", "ATEN_", "DNNL_", "ONEDNN_", "MALLOC_",
                 "GLIBC_TUNABLES", "LD_PRELOAD", "ROUTING_")


class Failed(Exception):
    pass


class Case(NamedTuple):
    bench: str
    pattern: str
    precision: str
    size: str = ""  # of train

    def text(self):
        return " ".join(word for word in self if word)


class Isa(NamedTuple):
    """The instructions of a class of processors, on one that has more of them."""
    ours: dict
    eager: dict
    core_types: tuple  # of OpenBLAS; the first is what it would detect there
    precisions: tuple = ("fp32", "bf16")


# No bf16 with avx2: torch asks the processor whether oneDNN can multiply bfloat16, and oneDNN then refuses.
ISAS = {
    "avx2": Isa({"ROUTING_ISA": "avx2", "DNNL_MAX_CPU_ISA": "AVX2"},
                {"ATEN_CPU_CAPABILITY": "avx2", "DNNL_MAX_CPU_ISA": "AVX2"}, ("Haswell", "Zen"), ("fp32",)),
    "avx512_bf16": Isa({"ROUTING_ISA": "avx512_bf16", "DNNL_MAX_CPU_ISA": "AVX512_CORE_BF16"},
                       {"ATEN_CPU_CAPABILITY": "avx512", "DNNL_MAX_CPU_ISA": "AVX512_CORE_BF16"},
                       ("Cooperlake", "SkylakeX", "Haswell", "Zen")),
}


def processor():
    """Its name, its flags and its class."""
    name, flags = "unknown", []
    with open("/proc/cpuinfo") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                name = line.split(":")[1].strip()
            if line.startswith("flags"):
                flags = line.split()
                break
    classes = (("amx_bf16", "amx"), ("avx512_bf16", "avx512_bf16"), ("avx512f", "avx512"), ("avx2", "avx2"))
    return name, flags, next((word for flag, word in classes if flag in flags), "older than avx2")


def note(text):
    print(text, file=sys.stderr, flush=True)


def plain_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}


def run(command, environment, timeout=1800):
    """The JSON objects that a command prints, one per line."""
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


def case_words(case):
    what = ["--pattern", case.pattern, "--pass", "forward+backward"]
    if case.bench == "train":
        what = ["--content", case.pattern]
    return [case.bench, *what, "--precision", case.precision]


def eager_command(options, case, repeats):
    limits = ["--repeats", str(repeats), "--limit", str(options.slow)]
    return [options.python, MEASURE, *case_words(case), *options.sizes[case.size].words(), *limits]


def our_command(options, case):
    return [options.routing, "bench", *case_words(case), *options.sizes[case.size].our_words(), "--json", "--repeats",
            "5"]


class Settings:
    """How all sides are run; eager at its best as trials before the rounds find it."""

    def __init__(self, options, cases):
        self.load = os.getloadavg()[0]  # before we add to it
        self.cores = len(os.sched_getaffinity(0))
        self.name, flags, self.own_class = processor()
        self.isa = ISAS[options.isa] if options.isa else None
        self.environment = {"OMP_NUM_THREADS": str(self.cores)}
        if self.isa is None and "avx512f" in flags and "avx512dq" in flags:
            self.environment["ATEN_CPU_CAPABILITY"] = "avx512"
        self.core_rates = {name or "as detected": self.matmul_rate(options, name) for name in self.core_types(flags)}
        best = max(self.core_rates, key=self.core_rates.get)
        if best != "as detected":
            self.environment["OPENBLAS_CORETYPE"] = best
        shapes = {}  # the first size of each window
        for case in cases:
            shapes.setdefault(options.sizes[case.size].numbers["window"], options.sizes[case.size].numbers)
        widest = max(shapes)
        self.policy_seconds = {policy: self.pass_time(options, shapes[widest], widest, OMP_WAIT_POLICY=policy)
                               for policy in ("active", "passive")}
        if self.policy_seconds["passive"] < self.policy_seconds["active"]:
            self.environment["OMP_WAIT_POLICY"] = "passive"  # wins where others use the cores
        self.chunk_seconds = {window: self.chunk_times(options, shape) for window, shape in shapes.items()}
        self.chunks = {window: min(seconds, key=seconds.get) for window, seconds in self.chunk_seconds.items()}

    def core_types(self, flags):
        if self.isa is not None:
            return self.isa.core_types
        types = [None] + (["Haswell", "Zen"] if "avx2" in flags else [])
        if "avx512f" in flags:
            types += ["SkylakeX"] + (["Cooperlake"] if "avx512_bf16" in flags else [])
        return types

    def our_environment(self):
        return {**plain_environment(), **(self.isa.ours if self.isa else {})}

    def installed_environment(self):
        if self.isa is None:
            return plain_environment()
        return {**plain_environment(), **self.isa.eager, "OPENBLAS_CORETYPE": self.isa.core_types[0]}

    def best_environment(self, **more):
        return {**self.installed_environment(), **self.environment, **more}

    def matmul_rate(self, options, core_type):
        more = {"OPENBLAS_CORETYPE": core_type} if core_type else {}
        command = [options.python, MEASURE, "matmul", "--threads", str(self.cores), "--repeats", "9"]
        line = run(command, self.best_environment(**more))[-1]
        note(f"trial: OpenBLAS core type {core_type or 'as detected'}: {line['square_gflops']:.0f} GFLOP/s square, "
             f"{line['batch_gflops']:.0f} in batches")
        return (line["square_gflops"] * line["batch_gflops"])**0.5

    def chunk_times(self, options, shape):
        sizes = sorted({max(1, shape["window"] // part) for part in (1, 2, 4)}, reverse=True)
        return {size: self.pass_time(options, shape, size) for size in sizes}

    def pass_time(self, options, shape, chunk, **more):
        """Of attention over lists."""
        dim = shape.get("dim") or shape["width"] // shape["heads"]
        words = [f"{name}={value}" for name, value in more.items()]
        command = [options.python, MEASURE, *case_words(Case("attention", "nearest", "fp32")), "--dim", str(dim)]
        for name in ("n", "heads", "window", "clusters"):
            command += ["-n" if name == "n" else f"--{name}", str(shape[name])]
        command += ["--repeats", "3", "--limit", str(options.slow), "--threads", str(self.cores), "--chunk", str(chunk)]
        seconds = run(command, self.best_environment(**more))[-1]["seconds"]
        note(f"trial: window {shape['window']}, {' '.join([f'{chunk} queries at once', *words])}: {seconds:.3f} s")
        return seconds

    def processor_class(self):
        return next((name for name, isa in ISAS.items() if isa is self.isa), self.own_class)

    def processor_text(self):
        text = f"{self.name}, {self.cores} cores, class {self.processor_class()}"
        if self.isa is not None:
            text += f": the instructions of such a processor on one of class {self.own_class}, all sides"
        return text

    def text(self):
        fixed = self.isa.eager if self.isa else {}
        words = [f"{name}={value}" for name, value in sorted({**fixed, **self.environment}.items())]
        chunks = ", ".join(f"{chunk} queries (window {window})" for window, chunk in self.chunks.items())
        return " ".join(words + [f"torch.set_num_threads({self.cores}), chunks of {chunks}"])
