"""Models of `routing train`: the program's numbers, in Python."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Callable

import numpy as np
import pytest
import routing_transformer as rt
import torch
from conftest import SENTENCE, run

Runs = Callable[[str], pathlib.Path]


def generated(run_folder: pathlib.Path, *options: str) -> dict:
    printed = run("generate", str(run_folder), "--json", "--logprobs", "--seed", "5", *options)
    return json.loads(printed.splitlines()[0])


@pytest.mark.parametrize(
    "kind, prompt", [("text", "The old man"), ("words", "The old man of"), ("subwords", "The old man of")]
)
def test_text_and_its_likelihoods_are_the_program_s(runs: Runs, kind: str, prompt: str) -> None:
    model = rt.Model.load(runs(kind))
    theirs = generated(runs(kind), "--prompt", prompt, "-n", "200")
    ours = list(model.generate(prompt, max_new_tokens=200, seed=5))
    assert [token.id for token in ours] == theirs["tokens"]
    assert "".join(token.text for token in ours) == theirs["text"]
    assert [token.log_probability for token in ours] == theirs["logprobs"]
    assert ours[-1].stop == "length" and ours[0].stop is None
    # One pass over the whole sequence has the very logits that the program drew from, one by one.
    ids = torch.cat([model.encode(prompt), torch.tensor([token.id for token in ours])])
    rows = model.logits(ids)[0, -200:].double()
    whole = rows.log_softmax(-1).gather(1, ids[-200:, None])[:, 0]
    np.testing.assert_allclose(whole.numpy(), theirs["logprobs"], rtol=0, atol=1e-12)


def test_images_are_the_program_s(runs: Runs, tmp_path: pathlib.Path) -> None:
    model = rt.Model.load(runs("image"))
    assert model.image_shape == (8, 8, 3) and model.token_kind == "subpixels"
    images = model.generate_images(2, seed=5)
    assert images.shape == (2, 8, 8, 3) and images.dtype == np.uint8
    run("generate", str(runs("image")), "--seed", "5", "--num-samples", "2", "--out", str(tmp_path / "out"))
    from matplotlib.image import imread

    for number in range(2):
        theirs = np.rint(imread(tmp_path / "out" / f"sample-{number:03}.png") * 255).astype(np.uint8)
        np.testing.assert_array_equal(images[number], theirs[..., :3])
    begun = model.generate_images(1, prompt=images[0][:4], seed=6)
    np.testing.assert_array_equal(begun[0][:4], images[0][:4])


def test_pairs_are_the_program_s(runs: Runs) -> None:
    model = rt.Model.load(runs("pairs"))
    assert model.token_kind == "symbols"
    theirs = generated(runs("pairs"), "--prompt-ids", "3,4,5,6")
    ours = list(model.generate([3, 4, 5, 6], seed=5))
    assert [token.id for token in ours] == theirs["tokens"]
    assert [token.log_probability for token in ours] == theirs["logprobs"]
    target = [token.id for token in ours]
    rows = model.logits(target, source=[3, 4, 5, 6])[0].double().log_softmax(-1)
    np.testing.assert_allclose(
        [float(rows[i, id_]) for i, id_ in enumerate(target)], theirs["logprobs"], rtol=0, atol=1e-12
    )
    with pytest.raises(rt.InputError, match="reads a source"):
        model.logits([3, 4])
    with pytest.raises(rt.InputError, match=r"use nats\(target, source\)"):
        model.score([3, 4])


def test_scores_are_those_of_eval(runs: Runs, tmp_path: pathlib.Path) -> None:
    model = rt.Model.load(runs("text"))
    text = tmp_path / "other.txt"
    text.write_text(SENTENCE * 6, encoding="utf-8")
    theirs = json.loads(run("eval", str(runs("text")), "--data", str(text), "--split", "train", "--json"))
    part = (SENTENCE * 6)[: theirs["tokens"]]
    nats = model.score(part)
    assert float(nats.double().mean()) == pytest.approx(theirs["eval_loss_nats"], abs=1e-9)
    halves = model.score(part, sequence_length=64, stride=16)
    assert len(halves) == len(nats) and not torch.equal(halves, nats)
    torch.testing.assert_close(model.nats(model.encode(SENTENCE)[:60])[0], model.score(SENTENCE)[:60])


@pytest.mark.parametrize("kind", ["text", "words", "subwords", "image", "pairs"])
def test_every_token_costs_what_eval_says(runs: Runs, tmp_path: pathlib.Path, kind: str) -> None:
    model = rt.Model.load(runs(kind))
    windows = tmp_path / "nats.jsonl"
    run("eval", str(runs(kind)), "--split", "valid", "--limit-tokens", "300", "--nats", str(windows))
    lines = [json.loads(line) for line in windows.read_text(encoding="utf-8").splitlines()]
    assert lines
    for window in lines:
        ours = model.nats(window["tokens"], window.get("source"))[0].numpy()
        # The shortest digits that tell one float32 from all others.
        np.testing.assert_array_equal(ours, np.asarray(window["nats"], dtype=np.float32))


def test_batches_and_arrays(runs: Runs) -> None:
    model = rt.Model.load(runs("text"))
    ids = model.encode("The sea told the man")
    both = torch.stack([ids, ids.flip(0)])
    assert torch.equal(model.logits(both)[0], model.logits(ids)[0])
    assert torch.equal(model.logits(ids.numpy()), model.logits(ids.tolist()))
    assert model.decode(ids) == "The sea told the man"
    assert model.logits(ids).numpy().shape == (1, 20, 256)


def test_what_heads_read(runs: Runs) -> None:
    model = rt.Model.load(runs("text"))
    heads = model.attention(SENTENCE, 30)
    assert {head["layer"] for head in heads} == {0, 1}
    for head in heads:
        assert float(head["weights"].sum()) == pytest.approx(1.0) or len(head["tokens"]) == 0
        assert bool((head["tokens"] < 30).all())
    (one,) = model.attention(SENTENCE, 30, layer=0, head=0)
    assert one["pattern"] == "local" and len(one["tokens"]) == 8
    plans = model.plans(SENTENCE)
    assert len(plans) == 2 and plans[0][0].num_queries == len(SENTENCE)
    clusters = model.clusters(SENTENCE)
    assert clusters and all(members.shape == (len(SENTENCE), 4) for members in clusters.values())
    with pytest.raises(rt.ConfigError, match="layer"):
        model.attention(SENTENCE, 30, layer=9)


def test_facts_and_tensors(runs: Runs) -> None:
    model = rt.Model.load(runs("text"), precision="fp32")
    assert model.precision == "fp32" and model.validity == "causal"
    assert model.settings["model.layers"] == "2"
    assert sum(t.numel() for name, t in model.tensors().items() if "centroids" not in name) == model.num_parameters
    assert "bytes" in repr(model)
    before = model.logits([1, 2, 3])
    with torch.no_grad():
        model.tensors()["output_bias"].add_(torch.arange(256.0))
    assert not torch.equal(model.logits([1, 2, 3]), before)


def test_stop_texts_and_samples(runs: Runs) -> None:
    model = rt.Model.load(runs("text"))
    tokens = list(model.generate("The", max_new_tokens=20, samples=3, seed=2))
    assert [sum(t.sample == s for t in tokens) for s in range(3)] == [20, 20, 20]
    alone = [t.id for t in model.generate("The", max_new_tokens=20, seed=2)]
    assert [t.id for t in tokens if t.sample == 0] == alone
    whole = model.generate_text(b"The", max_new_tokens=60, seed=2, top_k=1)
    stop = whole[3:5]
    for given in (stop, [stop]):  # one text is one text, not its letters
        ended = model.generate_text("The", max_new_tokens=60, seed=2, top_k=1, stop=given)
        assert ended == whole[: whole.index(stop)]


def test_next_logits_are_those_that_generate_draws_from(runs: Runs) -> None:
    for kind, prompt in (("text", [84, 104, 101]), ("image", [1, 2]), ("pairs", [3, 4, 5, 6])):
        model = rt.Model.load(runs(kind))
        logits = model.next_logits(prompt)
        assert logits.shape == (model.vocabulary_size,)
        (token,) = model.generate(prompt, max_new_tokens=1, temperature=0.0)
        known = logits[:256] if kind == "text" else logits
        assert int(known.argmax()) == token.id
        if kind == "text":
            assert torch.equal(model.logits(prompt + [0])[0, -1], logits)
            assert model.next_logits().shape == logits.shape


def test_prompts_of_images_are_rows_of_whole_numbers(runs: Runs) -> None:
    model = rt.Model.load(runs("image"))
    image = model.generate_images(1, seed=5)[0]
    for prompt, words in (
        (image[:4] / 255.0, "float64"),
        (image[:4].transpose(2, 0, 1), r"\[3, 4, 8\], but must be \[rows, 8, 3\]"),
        (image[:4, :5], r"\[4, 5, 3\]"),
        (image[None, :4], r"\[1, 4, 8, 3\]"),
        (image[:4].astype(int) - 300, "0 to 255"),
    ):
        with pytest.raises(rt.InputError, match=words):
            model.generate_images(1, prompt=prompt)
    with pytest.raises(rt.ConfigError, match="no option samples"):
        model.generate_images(1, samples=2)


def test_a_long_score_can_be_interrupted(runs: Runs) -> None:
    code = (
        "import routing_transformer as rt, signal, sys, threading, os, time\n"
        "model = rt.Model.load(sys.argv[1])\n"
        "text = b'the old man ' * 200_000\n"
        "threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    model.score(text)\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(runs("text"))], capture_output=True, text=True, check=False)
    assert done.stdout == "interrupted\n", done.stderr


def test_bad_input_says_what_to_do(runs: Runs, tmp_path: pathlib.Path) -> None:
    model = rt.Model.load(runs("text"))
    for tokens, words in (([256], "256.*0 to 255"), ([-1], "-1"), ([1.5], "whole numbers"), ([[[1]]], r"\[1, 1, 1\]")):
        with pytest.raises(rt.InputError, match=words):
            model.logits(tokens)
    with pytest.raises(rt.FileError, match="nothing-here"):
        rt.Model.load(tmp_path / "nothing-here")
    with pytest.raises(OSError):
        rt.Model.load(tmp_path)
    for options, words in (({"temperature": -1.0}, "temperature"), ({"seed": -1}, "seed is -1")):
        with pytest.raises(rt.ConfigError, match=words):
            model.generate("a", **options)  # at once, not with the first token
    with pytest.raises(rt.ConfigError, match="samples is 2"):
        model.generate_text("a", samples=2)
    assert rt.Model.load(runs("text"), checkpoint="last").path.endswith(".safetensors")
    step = int(model.path.split("step-")[1].split("/")[0])
    assert rt.Model.load(runs("text"), checkpoint=step).path == model.path
    with pytest.raises(rt.InputError, match="images, which have no text"):
        rt.Model.load(runs("image")).encode("text")
