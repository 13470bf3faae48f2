"""The scripts of examples/ run and draw."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from typing import Callable

import routing_transformer as rt
from conftest import ROOT, SENTENCE

PACKAGE = str(pathlib.Path(rt.__file__).parents[1])


def example(name: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": PACKAGE}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *arguments],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_picture(path: pathlib.Path) -> bool:
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 5000


def test_training_in_pytorch(tmp_path: pathlib.Path) -> None:
    text = tmp_path / "text"
    text.write_text(SENTENCE * 40, encoding="utf-8")
    out = tmp_path / "curves.png"
    said = example("train_in_pytorch.py", "--data", str(text), "--steps", "3", "--length", "64", "--out", str(out))
    assert "local" in said and "routing" in said and is_picture(out)


def test_looking_at_clusters(runs: Callable[[str], pathlib.Path], tmp_path: pathlib.Path) -> None:
    out = tmp_path / "clusters.png"
    said = example("look_at_clusters.py", str(runs("text")), "--out", str(out))
    assert "layer 1 head 4 routing" in said and is_picture(out)


def test_comparing_with_eager(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "speed.png"
    said = example(
        "compare_with_eager.py", "--tokens", "64,128", "--window", "16", "--repeats", "2", "--out", str(out)
    )
    assert "eager / ours" in said and is_picture(out)


def test_code_of_the_documents_runs(runs: Callable[[str], pathlib.Path], tmp_path: pathlib.Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text(SENTENCE * 5, encoding="utf-8")
    for page in ("README.md", "docs/python.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, re.S)
        assert blocks
        code = "\n".join(blocks).replace("book.txt", str(book))
        code = re.sub(r"runs/\w+", str(runs("text")), code)
        exec(compile(code, page, "exec"), {})
