"""What the installed Python package must do, where nothing else of this project is installed.

    python_package.py FOLDER

FOLDER holds a run for each of NAMES as `routing train` left it; beside it what the program says of it, NAME.json by
`routing generate --prompt PROMPT --ignore-end --json --logprobs` and NAME.jsonl by `routing eval --nats`; and pages
whose Python code is run as it stands. scripts/try-package writes all of that, removes the program and then runs this.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import pathlib
import re
import sys
from typing import Any, Dict

import routing_transformer as rt
import torch

NAMES = ("bytes", "subwords")
PROMPT = "The GNU"


def check(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(f"python_package: {what}")


def attention() -> None:
    """attend() beside a softmax over the mask that the plan stands for, with gradients."""
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, 2, 40, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))
    plan = rt.plans.local(1, 2, 40, window=7)
    hidden = plan.dense_counts() == 0
    expected = ((q @ k.transpose(2, 3)) / 8**0.5).masked_fill(hidden, -torch.inf).softmax(-1) @ v
    ours = rt.attend(q, k, v, plan)
    weights = torch.randn_like(ours)
    gradients = [torch.autograd.grad((y * weights).sum(), (q, k, v)) for y in (ours, expected)]
    differences = [(ours - expected).abs().max()] + [(a - b).abs().max() for a, b in zip(*gradients)]
    check(float(max(differences)) < 1e-10, f"attend and its gradients are {differences} off")
    print(f"attend, gradients: within {float(max(differences)):.0e} of a masked softmax")


def model(folder: pathlib.Path, name: str) -> None:
    """Tokens, their text and log-probabilities, and what every token of a text costs: the program's bits."""
    loaded = rt.Model.load(folder / "runs" / name)
    theirs = json.loads((folder / f"{name}.json").read_text(encoding="utf-8").splitlines()[0])
    count = len(theirs["tokens"])
    ours = list(loaded.generate(PROMPT, max_new_tokens=count, ignore_end=True))
    check([token.id for token in ours] == theirs["tokens"], f"{name}: other tokens than the program's")
    check("".join(token.text for token in ours) == theirs["text"], f"{name}: another text than the program's")
    check([token.log_probability for token in ours] == theirs["logprobs"], f"{name}: other log-probabilities")
    scored = 0
    for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        window: Dict[str, Any] = json.loads(line)
        nats = loaded.nats(window["tokens"])[0]
        check(torch.equal(nats, torch.tensor(window["nats"])), f"{name}: tokens cost other nats than the program says")
        scored += len(nats)
    check(count >= 100 and scored > 0, f"{name}: {count} tokens to generate and {scored} to score are too few")
    print(f"{name}: {count} generated tokens and the cost of {scored} are the program's, bit for bit")


def page(folder: pathlib.Path, name: str) -> None:
    """The Python code of a page, pasted."""
    blocks = re.findall(r"```python\n(.*?)```", (folder / name).read_text(encoding="utf-8"), re.S)
    check(bool(blocks), f"{name}: has no Python code")
    code = re.sub(r"runs/\w+", str(folder / "runs" / NAMES[0]), "\n".join(blocks)).replace(
        "book.txt", str(folder / name)
    )
    # What the examples print is a young model's bytes, and no news.
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, name, "exec"), {})
    print(f"{name}: {len(blocks)} pieces of Python code run")


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    installed = importlib.util.find_spec("routing_transformer")
    check(installed is not None and "dist-packages" in str(installed.origin), "is not the installed package")
    attention()
    for name in NAMES:
        model(folder, name)
    for path in sorted(folder.glob("*.md")):
        page(folder, path.name)


if __name__ == "__main__":
    main()
