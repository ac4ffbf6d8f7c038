"""A language model of 2 MB for llama.cpp: the pairs of bytes that it has learned follow each other, and nothing else.

It stops at once unless a grammar makes it go on. Within one it writes the word `refund` in every string and the number
72 for every score. One layer adds nothing, so the next byte depends on the last one only: embeddings are unit vectors,
and the output matrix says how much each byte is wanted after each other one.
"""

import struct
from array import array
from itertools import pairwise
from pathlib import Path

WORD, SCORE = "refund", 72
_WIDTH = 288
_END, _UNKNOWN, _BEGIN, _FIRST_BYTE, _SPACE = 0, 1, 2, 3, 259
_TOKENS = ["</s>", "<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
_TYPES = [3, 2, 3, *[6] * 256, 1]  # Control, unknown, byte, normal
_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)
_WANTED = {":": 0.95, '"': 0.9, "]": 0.85, "}": 0.8, ",": 0.7, str(SCORE)[0]: 0.5}
"""After any byte, where the grammar allows it."""
_UINT32, _FLOAT32, _STRING, _ARRAY, _INT32, _BOOL = 4, 6, 8, 9, 5, 7
_ALIGNMENT = 32


def write_tiny_model(path: Path) -> Path:
    fields = b"".join(_fields())
    tensors = _tensors()
    directory, data = b"", b""
    for name, (shape, values) in tensors.items():
        dimensions = struct.pack(f"<{len(shape)}Q", *shape)
        directory += _text(name) + struct.pack("<I", len(shape)) + dimensions + struct.pack("<IQ", 0, len(data))
        data += _padded(values.tobytes())
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(_fields())) + fields + directory
    path.write_bytes(_padded(head) + data)
    return path


def _tensors() -> dict[str, tuple[tuple[int, ...], "array[float]"]]:
    square, narrow = (_WIDTH, _WIDTH), (_WIDTH, 32)
    layer = {
        "attn_q": square, "attn_k": square, "attn_v": square, "attn_output": square,
        "ffn_gate": narrow, "ffn_up": narrow, "ffn_down": narrow[::-1],
    }  # fmt: skip
    return {
        "token_embd.weight": ((_WIDTH, len(_TOKENS)), _embeddings()),
        "output.weight": ((_WIDTH, len(_TOKENS)), _preferences()),
        "output_norm.weight": ((_WIDTH,), array("f", [1.0] * _WIDTH)),
        "blk.0.attn_norm.weight": ((_WIDTH,), array("f", [1.0] * _WIDTH)),
        "blk.0.ffn_norm.weight": ((_WIDTH,), array("f", [1.0] * _WIDTH)),
        **{f"blk.0.{name}.weight": (shape, _zeros(shape[0] * shape[1])) for name, shape in layer.items()},
    }


def _zeros(count: int) -> "array[float]":
    return array("f", bytes(4 * count))


def _embeddings() -> "array[float]":
    values = _zeros(_WIDTH * len(_TOKENS))
    for token in range(len(_TOKENS)):
        values[token * _WIDTH + token] = 1.0
    return values


def _preferences() -> "array[float]":
    """By the next token, then by the last one."""
    values = _zeros(_WIDTH * len(_TOKENS))

    def want(after: int, next: int, much: float) -> None:
        values[next * _WIDTH + after] = much

    for after in range(len(_TOKENS)):
        want(after, _END, 2.0)
        for character, much in _WANTED.items():
            want(after, _token(character), much)
    for after, next in [*pairwise(f'"{WORD}"'), ("[", '"'), *pairwise(f"{SCORE},")]:
        want(_token(after), _token(next), 5.0)
    return values


def _token(character: str) -> int:
    return _FIRST_BYTE + ord(character)


def _fields() -> list[bytes]:
    numbers = {
        "context_length": 32_768, "embedding_length": _WIDTH, "block_count": 1, "feed_forward_length": 32,
        "attention.head_count": 1, "attention.head_count_kv": 1, "rope.dimension_count": _WIDTH,
        "vocab_size": len(_TOKENS),
    }  # fmt: skip
    ids = {"bos_token_id": _BEGIN, "eos_token_id": _END, "unknown_token_id": _UNKNOWN}
    vocabulary = b"".join(map(_text, _TOKENS))
    return [
        _field("general.architecture", _STRING, _text("llama")),
        _field("general.name", _STRING, _text("tiny")),
        *(_field(f"llama.{name}", _UINT32, struct.pack("<I", value)) for name, value in numbers.items()),
        _field("llama.attention.layer_norm_rms_epsilon", _FLOAT32, struct.pack("<f", 1e-5)),
        _field("tokenizer.ggml.model", _STRING, _text("llama")),
        _field("tokenizer.ggml.tokens", _ARRAY, struct.pack("<IQ", _STRING, len(_TOKENS)) + vocabulary),
        _field("tokenizer.ggml.scores", _ARRAY, _array(_FLOAT32, "f", [0.0] * len(_TOKENS))),
        _field("tokenizer.ggml.token_type", _ARRAY, _array(_INT32, "i", _TYPES)),
        *(_field(f"tokenizer.ggml.{name}", _UINT32, struct.pack("<I", value)) for name, value in ids.items()),
        _field("tokenizer.ggml.add_space_prefix", _BOOL, b"\0"),
        _field("tokenizer.chat_template", _STRING, _text(_TEMPLATE)),
    ]


def _field(name: str, kind: int, value: bytes) -> bytes:
    return _text(name) + struct.pack("<I", kind) + value


def _array(kind: int, code: str, values: list[float] | list[int]) -> bytes:
    return struct.pack("<IQ", kind, len(values)) + array(code, values).tobytes()


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
