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
    """Sizes, in words that both sides understand."""
    names = ("n", "heads", "window", "clusters") + (("dim",) if bench == "attention" else ("layers", "width"))
    words = [word for name in names for word in ("-n" if name == "n" else f"--{name}", str(getattr(options, name)))]
    return words + (["--relative"] if bench == "train" and options.relative else [])


def case_words(options, case):
    bench, pattern, precision = case
    what = ["--pattern", pattern, "--pass", "forward+backward"] if bench == "attention" else ["--content", pattern]
    return [bench, *what, "--precision", precision, *case_shape(options, bench)]


def eager_command(options, case, repeats):
    limits = ["--repeats", str(repeats), "--limit", str(options.slow)]
    return [options.python, MEASURE, *case_words(options, case), *limits]


def our_command(options, case):
    return [options.routing, "bench", *case_words(options, case), "--json", "--repeats", "5"]


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
        self.policy_seconds = {policy: self.pass_time(options, options.window, OMP_WAIT_POLICY=policy)
                               for policy in ("active", "passive")}
        if self.policy_seconds["passive"] < self.policy_seconds["active"]:
            self.environment["OMP_WAIT_POLICY"] = "passive"  # wins where others use the cores
        sizes = sorted({max(1, options.window // part) for part in (1, 2, 4)}, reverse=True)
        self.chunk_seconds = {size: self.pass_time(options, size) for size in sizes}
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

    def pass_time(self, options, chunk, **more):
        command = eager_command(options, ("attention", "nearest", "fp32"), 3)
        command += ["--threads", str(self.cores), "--chunk", str(chunk)]
        seconds = run(command, self.whole_environment(**more))[-1]["seconds"]
        words = [f"{name}={value}" for name, value in more.items()]
        note(f"trial: {' '.join([f'{chunk} queries at once', *words])}: {seconds:.3f} s")
        return seconds

    def text(self):
        words = [f"{name}={value}" for name, value in sorted(self.environment.items())]
        return " ".join(words + [f"torch.set_num_threads({self.cores})", f"chunks of {self.chunk} queries"])
