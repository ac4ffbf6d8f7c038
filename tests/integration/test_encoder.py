"""The local encoder against published vectors, and any BERT-style model against plain arithmetic."""

import json
import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from mats.adapters.encoder import bert_graph
from mats.adapters.encoder import local as module
from mats.adapters.encoder.local import LocalEncoder
from mats.adapters.encoder.weights import MINILM, EncoderMissing

TEXT = "book a flight from paris to london for next tuesday"
GOLDEN = [0.081973, -0.055858, 0.024756, -0.027859, 0.001862]
"""The first five components that sentence-transformers gives for TEXT."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def exact(encoder, cache) -> LocalEncoder:
    return LocalEncoder.load(cache=cache, precision="fp32")


def cosine(a, b) -> float:
    return float(np.dot(np.asarray(a), np.asarray(b)))


def test_the_published_vectors_come_out(exact: LocalEncoder):
    vector = exact.encode_query(TEXT)
    assert list(vector[:5]) == pytest.approx(GOLDEN, abs=2e-6)
    assert (len(vector), exact.dimension) == (384, 384)


def test_int8_stays_close_to_them(encoder, exact: LocalEncoder):
    texts = [TEXT, "send an invoice", "semantic search over product photos", "x", "东京天气", "a " * 400]
    for quick, precise in zip(encoder.encode_documents(texts), exact.encode_documents(texts), strict=True):
        assert cosine(quick, precise) > 0.98


@pytest.mark.parametrize("text", ["", " ", "\0", "🦆", "a" * 100_000, "العربية", "\u202e"])
def test_any_text_has_a_unit_vector(encoder, text: str):
    vector = encoder.encode_query(text)
    assert math.sqrt(sum(x * x for x in vector)) == pytest.approx(1, abs=1e-5)


def test_many_texts_have_their_vectors_in_order(exact: LocalEncoder):
    texts = [f"{'pay ' * (n % 7)}invoice {n}" for n in range(30)]
    together = exact.encode_documents(texts)
    for text, vector in zip(texts, together, strict=True):
        assert cosine(vector, exact.encode_query(text)) == pytest.approx(1, abs=1e-5)


def test_a_text_has_one_vector_whatever_is_encoded_with_it(encoder):
    texts = ["refund", "give a customer the money back " * 20, "Zahlung erstatten", "x"]
    alone = [encoder.encode_documents([text])[0] for text in texts]
    assert encoder.encode_documents(texts) == alone == encoder.encode_documents(texts[::-1])[::-1]


def test_no_texts_have_no_vectors(encoder):
    assert encoder.encode_documents([]) == []


def test_threads_may_share_it(encoder):
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(encoder.encode_query, [TEXT] * 40))
    assert all(vector == vectors[0] for vector in vectors)


def test_the_graph_is_built_once(exact: LocalEncoder, cache: Path, monkeypatch):
    monkeypatch.setattr(bert_graph, "prepare", lambda *arguments, **more: pytest.fail("built again"))
    assert LocalEncoder.load(cache=cache, precision="fp32").name == exact.name


def test_other_weights_under_the_same_name_are_refused(encoder, cache: Path, monkeypatch):
    monkeypatch.setattr(module, "MINILM", replace(MINILM, digests=MINILM.digests | {MINILM.weights: "0" * 64}))
    with pytest.raises(EncoderMissing, match="not the published one"):
        LocalEncoder.load(cache=cache)


def test_a_name_that_cannot_be_fetched_is_one_line(cache: Path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EncoderMissing, match="cannot be fetched") as refused:
        LocalEncoder.load("BAAI/no-such-encoder", cache=cache)
    assert "\n" not in str(refused.value)


WIDTH, HEADS, LAYERS, TOKENS = 8, 2, 2, ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "red", "blue", "green")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    """A BERT with random weights, laid out as on the hub."""
    folder = tmp_path_factory.mktemp("tiny")
    chance = np.random.default_rng(0)
    shapes = {
        "embeddings.word_embeddings.weight": (len(TOKENS), WIDTH),
        "embeddings.position_embeddings.weight": (16, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        for name, out, into in (
            ("attention.self.query", WIDTH, WIDTH),
            ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", 2 * WIDTH, WIDTH),
            ("output.dense", WIDTH, 2 * WIDTH),
        ):
            shapes |= {f"{at}.{name}.weight": (out, into), f"{at}.{name}.bias": (out,)}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{at}.{name}.weight": (WIDTH,), f"{at}.{name}.bias": (WIDTH,)}
    save_file(
        {f"bert.{n}": chance.normal(size=s).astype(np.float32) for n, s in shapes.items()}, folder / "model.safetensors"
    )
    config = {
        "model_type": "bert", "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_size": WIDTH,
        "layer_norm_eps": 1e-12, "max_position_embeddings": 16,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(TOKENS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def arithmetic(folder: Path, ids: list[int]):
    """The hidden states of a BERT, written down as in the paper."""
    from safetensors.numpy import load_file

    w = {
        name.removeprefix("bert."): value.astype(np.float64)
        for name, value in load_file(folder / "model.safetensors").items()
    }

    def norm(x, name):
        return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    gelu = np.vectorize(lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))))
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(LAYERS):
        at, depth = f"encoder.layer.{layer}", WIDTH // HEADS
        q, k, v = (linear(x, f"{at}.attention.self.{role}") for role in ("query", "key", "value"))
        heads = []
        for head in range(HEADS):
            own = slice(head * depth, (head + 1) * depth)
            scores = np.exp(q[:, own] @ k[:, own].T / math.sqrt(depth))
            heads.append(scores / scores.sum(-1, keepdims=True) @ v[:, own])
        x = norm(
            x + linear(np.concatenate(heads, -1), f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm"
        )
        wide = gelu(linear(x, f"{at}.intermediate.dense"))
        x = norm(x + linear(wide, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    return x


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_any_bert_in_a_folder_gives_what_the_arithmetic_gives(tiny: Path, cache: Path, pooling: str):
    (tiny / "1_Pooling").mkdir(exist_ok=True)
    (tiny / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": pooling == "cls"}))
    encoder = LocalEncoder.load(str(tiny), cache=cache, precision="fp32")
    hidden = arithmetic(tiny, [2, 4, 5, 6, 3])
    pooled = hidden[0] if pooling == "cls" else hidden.mean(0)
    assert list(encoder.encode_documents(["red", "red blue green"])[1]) == pytest.approx(
        list(pooled / np.linalg.norm(pooled)), abs=1e-5
    )


def test_vectors_of_a_large_vocabulary_are_stored_in_bytes(tiny: Path, tmp_path: Path, monkeypatch):
    exact = LocalEncoder.load(str(tiny), cache=tmp_path / "exact", precision="fp32")
    monkeypatch.setattr(bert_graph, "_MANY", len(TOKENS))
    small = LocalEncoder.load(str(tiny), cache=tmp_path / "small", precision="fp32")
    assert [np.load(path).dtype for path in (tmp_path / "small").glob("*.npy")] == [np.int8]
    for text in ("red", "red blue green", "something else"):
        assert cosine(exact.encode_query(text), small.encode_query(text)) > 0.999


@pytest.mark.parametrize(
    ("name", "prompts", "query", "document"),
    [
        ("tiny", None, "green", "green"),
        ("tiny", {}, "green", "green"),
        ("tiny", {"query": "red ", "document": "blue "}, "red green", "blue green"),
        ("tiny", {"query": "red ", "passage": "blue "}, "red green", "blue green"),
        ("multilingual-e5-tiny", None, "query: green", "passage: green"),
        ("multilingual-e5-tiny", {"query": "red "}, "red green", "green"),
    ],
)
def test_a_model_gets_the_prefixes_that_it_was_trained_with(tiny, tmp_path, cache, name, prompts, query, document):
    shutil.copytree(tiny, tmp_path / name)
    if prompts is not None:
        (tmp_path / name / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    plain = LocalEncoder.load(str(tiny), cache=cache, precision="fp32")
    prefixed = LocalEncoder.load(str(tmp_path / name), cache=cache, precision="fp32")
    assert prefixed.encode_query("green") == plain.encode_query(query)
    assert prefixed.encode_documents(["green"]) == plain.encode_documents([document])
    assert prefixed.name.endswith("-prefixed") is (query != "green")


def test_another_architecture_is_refused_by_name(tiny: Path, tmp_path: Path, cache: Path):
    for file in ("model.safetensors", "tokenizer.json"):
        (tmp_path / file).write_bytes((tiny / file).read_bytes())
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(EncoderMissing, match="llama"):
        LocalEncoder.load(str(tmp_path), cache=cache)
