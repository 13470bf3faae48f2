"""Models that `routing train` made, opened in Python."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor

from . import _core
from ._core import ConfigError, InputError, Plan

__all__ = ["Model", "Token"]

Ids = Union[Tensor, "np.ndarray[Any, Any]", Sequence[int]]


@dataclass(frozen=True)
class Token:
    """One generated token: of which sample, its id, log probability (nats), and the text that is certain now.

    `stop` is set with the last token of a sample: "length", "end" or "stop text".
    """

    sample: int
    id: int
    log_probability: float
    text: str
    stop: Optional[str]


def _tensor(ids: Ids) -> Tensor:
    if isinstance(ids, Tensor):
        return ids
    array = np.asarray(ids)
    if array.size == 0:
        return torch.zeros(0, dtype=torch.long)
    if array.dtype.kind not in "iu":
        raise InputError(f"tokens are {array.dtype}, but must be whole numbers")
    return torch.from_numpy(array.astype(np.int64))


class Model:
    """A trained model: tokens in, logits out; text and images out of it; what its heads read.

        model = Model.load("runs/mine")
        model.logits(model.encode("Once upon"))        # [1, tokens, vocabulary]
        for token in model.generate("Once upon"): print(token.text, end="")

    Everything has the bits of the program `routing`, in the same precision.
    """

    def __init__(self, loaded: _core.LoadedModel) -> None:
        self._model = loaded

    @classmethod
    def load(
        cls,
        run: Union[str, "os.PathLike[str]"],
        *,
        checkpoint: Union[str, int] = "best",
        vocabulary: str = "",
        precision: str = "",
    ) -> Model:
        """The model of a run's folder, a checkpoint's, an export or a file `model.safetensors`.

        checkpoint    "best", "last" or a step
        vocabulary    the file of its tokens, where the run does not keep it
        precision     "fp32", "bf16" or "auto"; as trained unless told
        """
        return cls(_core.LoadedModel(os.fspath(run), str(checkpoint), vocabulary, precision))

    path = property(lambda self: self._model.path, doc="The file of the weights.")
    settings = property(lambda self: self._model.settings, doc="Every key of the configuration, as text.")
    precision = property(lambda self: self._model.precision, doc="Of products: fp32 or bf16.")
    validity = property(
        lambda self: self._model.validity, doc='"causal", or "selection reads the future".'
    )
    audit = property(lambda self: self._model.audit, doc="What `routing audit` found.")
    data_label = property(lambda self: self._model.data_label, doc='"partial data", or empty.')
    token_kind = property(
        lambda self: self._model.token_kind, doc="bytes, words, subwords, subpixels or symbols."
    )
    vocabulary_size = property(lambda self: self._model.vocabulary_size, doc="Ids are below this.")
    num_parameters = property(lambda self: self._model.num_parameters, doc="Weights.")

    @property
    def image_shape(self) -> Optional[Tuple[int, int, int]]:
        """(height, width, 3) of a model of images, else None."""
        if not self._model.is_image:
            return None
        settings = self._model.settings
        return int(settings["model.image_height"]), int(settings["model.image_width"]), 3

    def tensors(self) -> Dict[str, Tensor]:
        """Weights and buffers by name (docs/model-format.md); changing them changes the model."""
        return dict(self._model.tensors())

    def encode(self, text: Union[str, bytes]) -> Tensor:
        """The token ids of a text, int64 [tokens]."""
        return self._model.encode(text)

    def decode(self, ids: Ids) -> str:
        """The text of token ids; bytes that are no UTF-8 become the replacement character."""
        return self._model.decode(_tensor(ids)).decode("utf-8", errors="replace")

    def logits(self, tokens: Ids, source: Optional[Ids] = None) -> Tensor:
        """[sequences, tokens, vocabulary]: row i predicts token i from those before it.

        tokens are [tokens] or [sequences, tokens]; `source` is what an encoder-decoder reads. The last row
        predicts the last of these tokens: next_logits() is about the one behind them.
        """
        return self._model.logits(_tensor(tokens), None if source is None else _tensor(source))

    def next_logits(self, tokens: Ids = ()) -> Tensor:
        """[vocabulary]: what comes behind these tokens, which may be none; the logits that generate() draws from.

        Of an encoder-decoder they are the source, and it is the first token of the target.
        """
        return self._model.next_logits(_tensor(tokens))

    def nats(self, tokens: Ids, source: Optional[Ids] = None) -> Tensor:
        """-log p of every token, [sequences, tokens], in one pass over each sequence."""
        return self._model.nats(_tensor(tokens), None if source is None else _tensor(source))

    def score(
        self,
        text: Union[str, bytes, Ids],
        *,
        sequence_length: Optional[int] = None,
        stride: Optional[int] = None,
    ) -> Tensor:
        """-log p of every token of a text of any length, float32 [tokens], as `routing eval` reads it.

        Windows of sequence_length tokens (that of training unless told), of which `stride` are new;
        without it windows are disjoint. The sum is the text's cost in nats.
        """
        ids = self.encode(text) if isinstance(text, (str, bytes)) else _tensor(text)
        return self._model.score(ids, sequence_length or 0, -1 if stride is None else stride)

    def generate(
        self,
        prompt: Union[str, bytes, Ids] = "",
        *,
        max_new_tokens: Optional[int] = None,
        samples: int = 1,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 0.8,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: int = 1,
        stop: Union[str, Sequence[str]] = (),
        ignore_end: bool = False,
    ) -> Iterator[Token]:
        """Tokens as they come, those of `routing generate` with the same seed and options.

        The prompt is text or ids; for an encoder-decoder it is the source. 256 new tokens unless told,
        an image to its end. `stop` is a text, or several, that ends a sample. Of several samples the
        tokens come in turns; `sample` says whose they are.
        """
        if not 0 <= seed < 2**64:
            raise ConfigError(f"generate: seed is {seed}, but must be 0 to 2^64 - 1")
        by_text = isinstance(prompt, (str, bytes))
        if by_text and prompt:
            ids = self.encode(prompt)  # type: ignore[arg-type]
        else:
            ids = torch.zeros(0, dtype=torch.long) if by_text else _tensor(prompt)  # type: ignore[arg-type]
        if max_new_tokens is None:
            shape = self.image_shape
            max_new_tokens = 256
            if shape is not None:
                max_new_tokens = shape[0] * shape[1] * shape[2]
            elif self._model.reads_source:
                max_new_tokens = int(self._model.settings["train.sequence_length"])
        generation = _core.Generation(
            self._model,
            ids,
            max_new_tokens,
            samples,
            temperature,
            top_k,
            top_p,
            min_p,
            repetition_penalty,
            seed,
            -1 if ignore_end else self._model.end_token,
            [stop] if isinstance(stop, str) else list(stop),
        )
        return self._tokens(generation)

    @staticmethod
    def _tokens(generation: _core.Generation) -> Iterator[Token]:
        while True:
            tokens = generation.next()
            if not tokens:
                return
            for token in tokens:
                yield Token(
                    token.sample,
                    token.token,
                    token.log_probability,
                    token.piece.decode("utf-8", errors="replace"),
                    token.stop,
                )

    def generate_text(self, prompt: Union[str, bytes] = "", **options: Any) -> str:
        """One sample as a string, without the prompt; options as in generate()."""
        if options.get("samples", 1) != 1:
            raise ConfigError(
                f"generate_text: samples is {options['samples']}, but it gives one text; call it with a seed for each, or "
                "generate(), whose tokens name their sample"
            )
        return "".join(token.text for token in self.generate(prompt, **options))

    def generate_images(
        self, count: int = 1, *, prompt: Optional["np.ndarray[Any, Any]"] = None, **options: Any
    ) -> "np.ndarray[Any, Any]":
        """uint8 [count, height, width, 3]; `prompt` holds the first rows of an image, [rows, width, 3]."""
        shape = self.image_shape
        if shape is None:
            raise InputError(f"{self.path}: holds no model of images")
        for name in ("samples", "max_new_tokens"):
            if name in options:
                raise ConfigError(f"generate_images: has no option {name}; `count` whole images are drawn")
        given: List[int] = []
        if prompt is not None:
            rows = np.asarray(prompt)
            if rows.ndim != 3 or rows.shape[1:] != shape[1:] or rows.shape[0] > shape[0]:
                raise InputError(
                    f"generate_images: prompt is {list(rows.shape)}, but must be [rows, {shape[1]}, 3] with at most "
                    f"{shape[0]} rows"
                )
            if rows.dtype.kind not in "iu" or rows.size and (rows.min() < 0 or rows.max() > 255):
                raise InputError(
                    f"generate_images: prompt is {rows.dtype}, but must hold whole numbers from 0 to 255"
                )
            given = [int(value) for value in rows.reshape(-1)]
        values = [list(given) for _ in range(count)]
        for token in self.generate(given, samples=count, **options):
            values[token.sample].append(token.id)
        return np.asarray(values, dtype=np.uint8).reshape((count,) + shape)

    def attention(
        self,
        text: Union[str, bytes, Ids],
        position: int,
        *,
        layer: Optional[int] = None,
        head: Optional[int] = None,
    ) -> List[Dict[str, Any]]:
        """Which tokens every head reads where token `position` is predicted, and with what weight.

        A dict per head: layer, head, pattern, clusters (of routed heads), tokens (int64; -1 is the
        start), weights (float64).
        """
        ids = self.encode(text) if isinstance(text, (str, bytes)) else _tensor(text)
        return self._model.attention(ids, position, layer, head)

    def plans(self, text: Union[str, bytes, Ids]) -> List[List[Plan]]:
        """The plan of every layer and head group of a pass over the text."""
        ids = self.encode(text) if isinstance(text, (str, bytes)) else _tensor(text)
        return self._model.plans(ids)

    def clusters(self, text: Union[str, bytes, Ids]) -> Dict[Tuple[int, int], "np.ndarray[Any, Any]"]:
        """{(layer, head): bool [tokens, clusters]} of all routed heads: which clusters a token is in.

        Row 0 is the start, row t + 1 is token t.
        """
        ids = self.encode(text) if isinstance(text, (str, bytes)) else _tensor(text)
        return {(layer, head): members.numpy() for layer, head, members in self._model.clusters(ids)}

    def __repr__(self) -> str:
        return f"Model({self.path!r}, {self.num_parameters:,} weights, {self.token_kind}, {self.validity})"
