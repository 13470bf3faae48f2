"""What several tests share. The program and a folder of small trained runs come from the build."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Callable, Dict, List

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("TESTED_PROGRAM", str(ROOT / "build" / "release" / "routing"))

SENTENCE = "The old man of the sea told the old woman of the hills what the sea had told him. "


def run(*arguments: str) -> str:
    """What the program prints; its errors fail the test with their words."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(7)


SMALL = [
    "--set", "model.layers=2", "--set", "model.width=32", "--set", "model.feedforward_width=64",
    "--set", "attention.heads=4", "--set", "attention.content_heads=2", "--set", "local.window=8",
    "--set", "routing.clusters=4", "--set", "routing.window=8", "--set", "routing.target_share=1", "--set", "train.batch_size=2",
    "--set", "train.eval_every=0", "--set", "train.warmup_steps=2",
]  # fmt: skip


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], pathlib.Path]:
    """A run of each kind, trained for a few steps when it is first asked for."""
    folder = tmp_path_factory.mktemp("runs")
    text = folder / "text.txt"
    text.write_text((SENTENCE.strip() + "\n") * 300, encoding="utf-8")
    images = folder / "images"
    images.mkdir()
    for number in range(12):
        _write_png(images / f"{number:02}.png", number)
    kinds: Dict[str, List[str]] = {
        "text": ["--data", str(text), "--tokens", "bytes", "--set", "train.sequence_length=64"],
        "words": ["--data", str(text), "--tokens", "words", "--set", "train.sequence_length=32"],
        "subwords": [
            "--data", str(text), "--tokens", "subwords", "--set", "train.sequence_length=32",
        ],
        "image": [
            "--data", str(images), "--set", "model.image_height=8", "--set", "model.image_width=8",
            "--set", "train.sequence_length=192",
        ],
        "pairs": [
            "--set", "data.format=reverse", "--set", "model.encoder_layers=1", "--set", "model.vocab_size=16",
            "--set", "train.sequence_length=13", "--set", "train.source_length=12",
        ],
    }  # fmt: skip
    made: Dict[str, pathlib.Path] = {}

    def get(kind: str) -> pathlib.Path:
        if kind not in made:
            out = folder / kind
            run("train", *kinds[kind], "--out", str(out), "--steps", "12", "--quiet", *SMALL)
            made[kind] = out
        return made[kind]

    return get


def _write_png(path: pathlib.Path, number: int) -> None:
    import struct
    import zlib

    rows = b"".join(
        b"\0" + bytes((number * 20 + row * 9 + column * 5 + channel * 31) % 256 for column in range(8) for channel in range(3))
        for row in range(8)
    )

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )
