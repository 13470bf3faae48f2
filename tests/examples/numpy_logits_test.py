"""examples/numpy_logits.py against `routing eval --nats`: a few trained models of every kind.

    numpy_logits_test.py PROGRAM [unittest's options]

The script was written from docs/model-format.md; where the two differ, one of the three is wrong.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))
sys.dont_write_bytecode = True
try:
    import numpy as np
    import numpy_attention
    import numpy_logits
except ModuleNotFoundError as missing:
    if missing.name not in ("numpy", "tomllib"):
        raise
    print(f"skipped: {missing}; install python3-numpy")
    sys.exit(77)

PROGRAM = ""
CLOSE = 2e-5  # nats; float32 against float64 is within 2e-6

# Small, and far from where it began after a few steps: biases, gains and scales count.
SMALL = """model.width=32 model.layers=2 model.feedforward_width=48 attention.heads=4
    attention.content_heads=2 attention.content_layers=all routing.clusters=4 routing.window=12
    local.window=10 train.sequence_length=64 train.batch_size=2 train.eval_tokens=64
    train.schedule=constant train.warmup_steps=0 train.learning_rate=0.02 train.precision=fp32"""
IMAGE = "model.image_height=6 model.image_width=8 train.sequence_length=144"
PAIRS = """train.sequence_length=25 train.source_length=24 model.encoder_layers=2
    attention.cross_heads=2"""
BANDS = "model.bands=6,12 model.adaptive_output=true"

LOCAL = {"max_relative": 0, "shared_query_key": False}
# Name: preset, kind of data, and what is set on top.
KINDS = {
    "threshold routing with shifted keys and learned scales": ("tiny-enwik8", "text", ""),
    "nearest routing by ranks, with recency and relu":
        ("tiny-enwik8", "text", "routing.selection=nearest routing.relative=rank "
         "routing.recency=true routing.key_shift=0 attention.content_layers=1..1"),
    "balanced routing of the authors' code, norms after sub-layers":
        ("tiny-enwik8", "text", "routing.preset=code attention.add_content=false model.norm=post"),
    "separate queries and keys, means of clusters, GEGLU":
        ("tiny-enwik8", "text", "routing.shared_query_key=false routing.key_shift=0 "
         "routing.merge=mean routing.relative=true_offset model.feedforward=geglu"),
    "three rounds of LSH":
        ("tiny-enwik8", "text", "attention.content=lsh lsh.rounds=3 lsh.buckets=4 lsh.window=9 "
         "lsh.relative=rank lsh.learned_scale=true"),
    "LSH with keys of its own, a mean of rounds":
        ("tiny-enwik8", "text", "attention.content=lsh lsh.shared_query_key=false lsh.buckets=4 "
         "lsh.rounds=2 lsh.window=9 lsh.merge=mean"),
    "random heads":
        ("tiny-enwik8", "text", "attention.content=random random.groups=3 random.window=20 "
         "random.merge=mean random.merge_eps=0.5 model.positions=sinusoidal"),
    "strided heads by ranks beside local ones":
        ("tiny-enwik8", "text", "attention.content=strided strided.stride=7 strided.relative=rank "
         "strided.max_relative=4 attention.add_content=false model.positions=learned"),
    "full heads with shifted keys that read themselves only if alone":
        ("tiny-enwik8", "text", "attention.content=full full.recency=true "
         "full.shared_query_key=true full.key_shift=1 full.self=only_if_alone "
         "attention.content_layers=odd"),
    "learned spans":
        ("tiny-enwik8", "text", "attention.content=span span.limit=40 span.ramp=6 span.initial=0.3 "
         "attention.content_heads=3"),
    "a compressed memory":
        ("tiny-enwik8", "text", "memory.length=32 memory.compressed=12 memory.rate=4 "
         "train.order=contiguous"),
    "words in tied bands with a start symbol of their own":
        ("my-words", "words", BANDS + " model.adaptive_input=true model.tied_output=true "
         "model.embedding_width=0 model.start_symbol=own"),
    "words with a narrow table and bands of the output":
        ("my-words", "words", BANDS + " model.tied_output=false model.embedding_width=16"),
    "images, local in two dimensions":
        ("my-images", "images", IMAGE + " attention.content=local2d local2d.rows=2 "
         "local2d.columns=3 local2d.above=1 local2d.beside=2 local2d.relative=true_offset "
         "local2d.max_relative=20"),
    "an encoder-decoder, routed, with fixed heads and blocks":
        ("tiny-copy", "", PAIRS + " attention.content=fixed fixed.stride=8 fixed.summary=2 "
         "local.form=block local.window=8 local.flange=0 model.positions=factored "
         "model.position_stride=8"),
    "an encoder-decoder of random, LSH and block heads":
        ("tiny-copy", "", PAIRS + " attention.encoder_content=random attention.cross_content=lsh "
         "random.groups=3 random.window=9 lsh.buckets=4 lsh.window=7 local.form=block "
         "local.window=5 model.norm=post model.positions=learned model.tied_output=true"),
}


def png(pixels: np.ndarray) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum
    size = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(rows)) + \
        chunk(b"IEND", b"")


class NumpyLogits(unittest.TestCase):
    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.folder = Path(held.name)
        draw = np.random.default_rng(1)
        words = "the quick brown fox jumps over a lazy dog while rain falls on café naïve".split()
        lines = (" ".join(draw.choice(words, 9)) + ".\n" for _ in range(300))
        (cls.folder / "text").write_text("".join(lines))
        (cls.folder / "images").mkdir()
        for number in range(40):
            pixels = draw.integers(0, 256, (6, 8, 3), dtype=np.uint8)
            (cls.folder / "images" / f"{number:02}.png").write_bytes(png(pixels))

    def routing(self, *words: str) -> str:
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("ROUTING_")}
        done = subprocess.run([PROGRAM, *words, "--threads", "1"], capture_output=True, text=True,
                              env={**environment, "XDG_CACHE_HOME": str(self.folder / "cache")})
        self.assertEqual(done.returncode, 0, f"routing {' '.join(words)}\n{done.stderr}")
        return done.stdout

    def train(self, preset: str, data: str, settings: str, steps: int = 6) -> Path:
        out = self.folder / "runs" / str(len(list(self.folder.glob("runs/*"))))
        words = ["--data", str(self.folder / ("text" if data == "words" else data))] if data else []
        words += ["--tokens", "words"] if data == "words" else []
        for setting in (SMALL + " " + settings).split():
            words += ["--set", setting]
        self.routing("train", "--preset", preset, "--out", str(out), "--steps", str(steps), *words)
        return out

    def test_every_kind_has_the_likelihoods_of_the_program(self) -> None:
        nats_file = self.folder / "nats.jsonl"
        for name, (preset, data, settings) in KINDS.items():
            with self.subTest(name):
                run = self.train(preset, data, settings)
                stride = ["--stride", "24"] if data == "text" and "memory" not in settings else []
                answer = json.loads(self.routing(
                    "eval", str(run), "--split", "valid", "--limit-tokens", "150", "--json",
                    "--nats", str(nats_file), *stride))
                model = numpy_logits.Model(Path(answer["model"]))
                scored = []
                for line in nats_file.read_text().splitlines():
                    window = json.loads(line)
                    nats = model.nats(window["tokens"], window.get("source"))
                    np.testing.assert_allclose(nats, window["nats"], rtol=0, atol=CLOSE)
                    scored.extend(nats[window["scored_from"]:])
                self.assertEqual(len(scored), answer["tokens"])
                self.assertAlmostEqual(np.mean(scored), answer["eval_loss_nats"], delta=CLOSE)

    def test_the_first_thresholds_are_quantiles_of_the_first_batch(self) -> None:
        # A training part of one window and a learning rate of almost nothing: the first batch and
        # the weights that it met are known.
        (self.folder / "short").write_bytes((self.folder / "text").read_bytes()[:192])
        run = self.train("tiny-enwik8", "short", "data.split=64/64/64 train.batch_size=1 "
                         "train.learning_rate=1e-30 routing.target_share=1.5", steps=1)
        model = numpy_logits.Model(run / "checkpoints/step-00000001")
        tokens = list((self.folder / "short").read_bytes()[:64])
        seen = []
        lists_of = numpy_attention.lists_of

        def watched(group: dict, head: int, q: np.ndarray, k: np.ndarray, *rest: dict) -> list:
            if group["pattern"] == "routing":
                seen.append((q, rest[0], head))
            return lists_of(group, head, q, k, *rest)

        numpy_attention.lists_of = watched
        try:
            model.logits(tokens)
        finally:
            numpy_attention.lists_of = lists_of
        self.assertEqual(len(seen), 4)
        for queries, own, head in seen[:2]:  # upper layers: by what the lower ones were before
            scores = np.sort(queries @ own["centroids.centroids"][head].T, axis=0)
            expected = scores[int((1 - 1.5 / 4) * len(queries))]
            np.testing.assert_allclose(own["centroids.tau"][head], expected, rtol=1e-5)

    def test_what_it_does_not_know_it_refuses_by_name(self) -> None:
        run = self.train("tiny-enwik8", "text", "memory.length=32 memory.compressed=12 "
                         "memory.compression=most_used train.order=contiguous", steps=1)
        with self.assertRaisesRegex(SystemExit, "memory.compression = most_used is not known"):
            numpy_logits.Model(run / "checkpoints/step-00000001")
        heads = {"heads": 4, "content_heads": 2, "content": "new", "add_content": False,
                 "content_layers": "all"}
        config = {"attention": heads, "model": {"layers": 1}, "new": {}}
        with self.assertRaisesRegex(SystemExit, "heads of the pattern new are not known"):
            numpy_attention.head_groups({**config, "local": LOCAL}, 0, "decoder")

    def test_the_command_says_how_far_apart_the_two_are_and_writes_logits(self) -> None:
        run = self.train("tiny-enwik8", "text", "", steps=1)
        nats_file, logits_file = self.folder / "command.jsonl", self.folder / "logits.npz"
        self.routing("eval", str(run), "--limit-tokens", "100", "--nats", str(nats_file))
        done = subprocess.run([sys.executable, str(ROOT / "examples/numpy_logits.py"),
                               str(run / "checkpoints/step-00000001"), str(nats_file), "--logits",
                               str(logits_file)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["tokens"], 100)
        self.assertLess(answer["largest_difference"], CLOSE)
        logits = np.load(logits_file)
        self.assertEqual([logits[name].shape for name in logits.files], [(64, 256), (36, 256)])

    def test_the_command_claims_no_agreement_without_something_to_compare_with(self) -> None:
        run = self.train("tiny-enwik8", "text", "", steps=1)
        windows = self.folder / "windows.jsonl"
        script = str(ROOT / "examples/numpy_logits.py")

        def command(model: Path, text: str) -> subprocess.CompletedProcess:
            windows.write_text(text)
            return subprocess.run([sys.executable, script, str(model), str(windows)],
                                  capture_output=True, text=True)

        checkpoint = run / "checkpoints/step-00000001"
        alone = command(checkpoint, '{"tokens": [84, 104, 101]}\n')
        self.assertEqual(sorted(json.loads(alone.stdout)), ["nats_per_token", "tokens"])
        self.assertIn("windows.jsonl: holds no windows", command(checkpoint, "").stderr)
        self.assertIn("of a run name a checkpoint", command(run, "").stderr)

    def test_streams_are_those_of_the_library(self) -> None:
        # What tests/core/random_test.cpp pins too.
        first = [word for _, word in zip(range(4), numpy_attention.words(0))]
        self.assertEqual(first, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])
        self.assertEqual(numpy_attention.stream_key(0, ""), 0xA706DD2F4D197E6F)
        self.assertEqual(numpy_attention.stream_key(1, "dropout", 3, 4), 0x7699734219A9B61B)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
