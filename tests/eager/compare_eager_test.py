"""scripts/compare-eager with a program that answers in place of torch and of routing: times are known."""
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "eager"))
sys.dont_write_bytecode = True
from report import Results

# Called as `PYTHON measure.py BENCH …` or `routing bench BENCH …`. Seconds: as installed 8, best 4, public 6, ours 1;
# half in bf16. Memory: 900, 800, 700 and 200.
ANSWERS = '''#!{python}
import json, os, sys
words = sys.argv[2:]
ours = sys.argv[1] == "bench"
bench = words[0]
option = lambda name, other=None: words[words.index(name) + 1] if name in words else other
log = open("{log}", "a")
if bench == "matmul":
    rate = {{"Haswell": 50, "SkylakeX": 80}}.get(os.environ.get("OPENBLAS_CORETYPE"), 20)
    print(json.dumps({{"bench": "matmul", "square_gflops": rate, "batch_gflops": rate}}))
    sys.exit()
side = "ours" if ours else "public" if option("--structure") else "best" if option("--chunk") else "installed"
precision = option("--precision")
name = option("--pattern") or option("--content")
seconds = {{"ours": 1.0, "best": 4.0, "public": 6.0, "installed": 8.0}}[side] * (0.5 if precision == "bf16" else 1.0)
if name == "local" and side == "installed":
    seconds = 3.0
if name == "full" and not ours:
    seconds *= 10
if name == "nearest" and option("--chunk") == str(int(option("--window")) // 2):
    seconds *= 0.5
if name == "local" and ours and "{broken}":
    sys.exit("nothing here")
log.write(json.dumps([side, bench, name, precision, option("--chunk"), dict(os.environ), words]) + "\\n")
print("a line that is no JSON")
print(json.dumps({{"bench": bench, "pattern": name, "precision": precision, "seconds": seconds, "pairs": 10,
                  "n": int(option("-n", 0)) + (1 if ours and option("-n") and name == "routing" else 0),
                  "peak_bytes": {{"ours": 200, "best": 800, "public": 700, "installed": 900}}[side],
                  "settings": {{"torch": "1", "threads": 1, "capability": "none", "blas": "none"}}}}))
'''


class CompareEager(unittest.TestCase):
    def compare(self, *options, broken=""):
        with tempfile.TemporaryDirectory() as folder:
            program, log = os.path.join(folder, "answers"), os.path.join(folder, "log")
            with open(program, "w") as file:
                file.write(ANSWERS.format(python=sys.executable, log=log, broken=broken))
            os.chmod(program, stat.S_IRWXU)
            environment = {**os.environ, "OMP_NUM_THREADS": "7", "OPENBLAS_CORETYPE": "Nehalem", "KEPT": "yes"}
            done = subprocess.run([os.path.join(ROOT, "scripts", "compare-eager"), "--routing", program, "--python",
                                   program, *options], env=environment, capture_output=True, text=True, timeout=60)
            with open(log) as file:
                return done, [json.loads(line) for line in file]

    def report(self, *options, **more):
        done, calls = self.compare("--json", *options, **more)
        return json.loads(done.stdout), calls, done.returncode

    def test_ratios_are_eager_over_ours_and_say_whether_they_are_enough(self):
        report, _, status = self.report("--rounds", "1", "--size", "6x512")
        self.assertEqual(status, 0)
        by_class = report["wanted"][8:]
        report["wanted"] = report["wanted"][:8]
        wanted = {line["what"]: (line["ratio"], line["met"]) for line in report["wanted"]}
        self.assertEqual(wanted, {
            "threshold: ours fp32 over eager fp32": (4.0, True),
            "threshold: ours bf16 over eager's best precision": (4.0, False),
            "nearest: ours fp32 over eager fp32": (2.0, False),
            "nearest: ours bf16 over eager's best precision": (2.0, False),
            "full attention: ours over eager, the best precision of each": (40.0, True),
            "training step with routing: ours bf16 over eager at its best, best precision": (4.0, True),
            "training step with routing: ours bf16 over eager as installed, best precision": (8.0, False),
            "memory of that step: the least of eager at its best over ours": (4.0, True),
        })
        self.assertEqual([(line["ratio"], line["met"]) for line in by_class], [(4.0, True), (4.0, True)])

    def test_what_is_wanted_goes_by_the_class_of_the_processor(self):
        side = lambda seconds, size: {"seconds": seconds, "peak_bytes": size}
        rows = [{"bench": "train", "size": "4x128", "pattern": "routing", "precision": precision, "installed": None,
                 "best": side(1.6, 390), "public": side(1.0, 100), "ours": side(1.0, 100)}
                for precision in ("fp32", "bf16")]
        for name, wanted in (("avx2", [("step of 4x128, fp32: ours over eager at its best", 1.6, 1.5, True),
                                       ("memory of 4x128, fp32: eager at its best over ours", 3.9, 4, False)]),
                             ("amx", [("step of 4x128, bf16: ours over eager at its best", 1.6, 1.8, False),
                                      ("memory of 4x128, bf16: eager at its best over ours", 3.9, 4, False)])):
            lines = list(Results(rows, name).wanted())[8:]
            self.assertEqual([tuple(line[key] for key in ("what", "ratio", "wanted", "met")) for line in lines], wanted)

    def test_eager_counts_as_installed_where_that_is_faster(self):
        side = lambda seconds: {"seconds": seconds, "peak_bytes": None}
        case = {"bench": "attention", "pattern": "nearest", "installed": side(6.0), "ours": side(2.0)}
        results = Results([{**case, "precision": "fp32", "best": side(8.0)},
                           {**case, "precision": "bf16", "best": side(5.0)}])
        ratios = {line["what"]: line["ratio"] for line in results.wanted() if line["ratio"] is not None}
        self.assertEqual(ratios, {"nearest: ours fp32 over eager fp32": 3.0,
                                  "nearest: ours bf16 over eager's best precision": 2.5})

    def test_sides_alternate_in_environments_of_their_own(self):
        report, calls, _ = self.report("--rounds", "2", "--only", "attention")
        calls = calls[5:]  # the trials of waiting and of chunks
        self.assertEqual([call[0] for call in calls[:6]], ["installed", "best", "ours"] * 2)
        self.assertEqual([call[1:4] for call in calls[:3]], [["attention", "threshold", "fp32"]] * 3)
        for side, *_, chunk, environment, _ in calls:
            self.assertEqual(environment["KEPT"], "yes")
            if side == "best":
                self.assertEqual(environment["OMP_NUM_THREADS"], str(len(os.sched_getaffinity(0))))
                self.assertEqual(chunk, "128")  # the fastest of the trial
                self.assertNotEqual(environment.get("OPENBLAS_CORETYPE"), "Nehalem")
            else:
                self.assertNotIn("OMP_NUM_THREADS", environment)
                self.assertNotIn("OPENBLAS_CORETYPE", environment)
        rates = report["trials"]["gflops"]
        fastest = max(rates, key=rates.get)
        if fastest != "as detected":
            self.assertIn(f"OPENBLAS_CORETYPE={fastest}", report["machine"]["eager at its best"])

    def test_slow_cases_get_two_rounds_and_say_so(self):
        report, calls, _ = self.report("--rounds", "3", "--only", "attention")
        rows = {(row["pattern"], row["precision"]): row for row in report["rows"]}
        self.assertEqual(rows["full", "fp32"]["best"]["rounds"], 2)
        self.assertEqual(rows["full", "fp32"]["ours"]["rounds"], 3)
        self.assertIn("eager at its best: 2 rounds, slow", rows["full", "fp32"]["remarks"])
        self.assertEqual(rows["local", "fp32"]["best"]["rounds"], 3)
        self.assertEqual(rows["local", "fp32"]["remarks"], ["eager is fastest as installed, and that counts"])
        self.assertEqual(rows["nearest", "fp32"]["remarks"], [])
        self.assertEqual(report["machine"]["eager's faster precision, attention local"], "bf16")

    def test_one_case_can_be_asked_for(self):
        report, calls, _ = self.report("--rounds", "1", "--only", "train", "--pattern", "routing", "--precision",
                                       "bf16", "--size", "4x128")
        self.assertEqual([(row["bench"], row["size"], row["pattern"], row["precision"]) for row in report["rows"]],
                         [("train", "4x128", "routing", "bf16")])
        self.assertEqual([call[0] for call in calls if call[1] == "train"], ["installed", "best", "public", "ours"])

    def test_sizes_are_the_same_models_on_all_sides_and_sides_can_be_left_out(self):
        report, calls, _ = self.report("--rounds", "1", "--only", "train", "--precision", "bf16", "--sides",
                                       "best,public,ours")
        self.assertEqual([row["size"] for row in report["rows"]], ["6x512", "quickstart", "tiny-enwik8", "4x128"])
        self.assertEqual(report["sides"], ["best", "public", "ours"])
        self.assertEqual([row["installed"] for row in report["rows"]], [None] * 4)
        self.assertEqual(report["rows"][0]["public"]["seconds"], 3.0)
        train = [call for call in calls if call[1] == "train"]
        self.assertEqual([call[0] for call in train], ["best", "public", "ours"] * 4)
        tiny = {call[0]: " ".join(call[6]) for call in train[6:9]}
        self.assertIn("--preset tiny-enwik8", tiny["ours"])
        shape = "--batch 4 --layers 4 --width 256 --heads 8 --content-heads 2 --content-layers 2 --window 128"
        for side in ("best", "public"):
            self.assertIn(shape, tiny[side])
        self.assertEqual([call[4] for call in train if call[0] == "best"], ["128", "64", "64", "64"])
        small = train[11][6]
        self.assertEqual(small[small.index("-n") + 1], "2048")
        wanted = [line["what"] for line in report["wanted"] if line["what"].startswith("step of")]
        self.assertEqual(len(wanted), 4 if report["processor_class"] != "avx2" else 0)

    def test_instructions_can_be_those_of_an_older_processor_on_all_sides(self):
        report, calls, _ = self.report("--rounds", "1", "--only", "train", "--size", "4x128", "--isa", "avx2")
        self.assertEqual(report["processor_class"], "avx2")
        self.assertEqual([row["precision"] for row in report["rows"]], ["fp32"])
        self.assertIn("class avx2: the instructions of such a processor", report["machine"]["processor"])
        self.assertIn("step of 4x128, fp32: ours over eager at its best", [line["what"] for line in report["wanted"]])
        for side, *_, environment, _ in calls:
            self.assertEqual(environment["DNNL_MAX_CPU_ISA"], "AVX2")
            if side == "ours":
                self.assertEqual(environment["ROUTING_ISA"], "avx2")
            else:
                self.assertEqual(environment["ATEN_CPU_CAPABILITY"], "avx2")
                self.assertIn(environment["OPENBLAS_CORETYPE"], ("Haswell", "Zen"))

    def test_numbers_and_names_of_sizes_exclude_each_other(self):
        for words, message in ((["--size", "4x128", "-n", "64"], "--size names whole models"),
                               (["--isa", "avx2", "--precision", "bf16"], "--isa avx2 has fp32 only"),
                               (["--size", "4x4"], "'4x4' is not one of 6x512, quickstart"),
                               (["--sides", "theirs"], "'theirs' is not one of installed, best, public, ours")):
            done = subprocess.run([os.path.join(ROOT, "scripts", "compare-eager"), *words], capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)

    def test_a_pattern_of_the_other_bench_is_refused(self):
        done = subprocess.run([os.path.join(ROOT, "scripts", "compare-eager"), "--only", "train", "--pattern", "full"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("train has routing, local", done.stderr)

    def test_different_shapes_are_remarked(self):
        report, _, _ = self.report("--quick", "--only", "train", "-n", "64")
        self.assertIn("2 rounds only", report["label"])
        remarks = [(row["size"], row["pattern"], row["remarks"]) for row in report["rows"]]
        differ = ["n differs: ours 65, eager 64", "n differs: ours 65, public 64"]
        self.assertEqual(remarks, [("own", "routing", differ)] * 2)

    def test_a_failure_is_in_its_row_and_in_the_exit_code(self):
        report, _, status = self.report("--rounds", "1", "--only", "attention", broken="yes")
        self.assertEqual(status, 1)
        row = next(row for row in report["rows"] if row["pattern"] == "local")
        self.assertIsNone(row["ours"])
        self.assertIn("nothing here", row["remarks"][0])

    def test_tables_show_every_case_and_what_was_not_measured(self):
        done, _ = self.compare("--rounds", "1", "--only", "attention")
        self.assertRegex(done.stdout, r"\| attention \| threshold \| fp32 +\| 8.000 +\| 4.000 +\| 1.000 \|")
        self.assertRegex(done.stdout, r"training step .* at its best.*\| - +\| 3 +\| not measured")
        self.assertRegex(done.stdout, r"nearest: ours fp32 .*\| 2.00 +\| 4 +\| NOT MET")


if __name__ == "__main__":
    unittest.main()
