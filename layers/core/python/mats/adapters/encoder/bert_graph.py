"""A BERT encoder as an ONNX graph, built from the published weights without a framework.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers" (2019): learned positions, post-norm, GELU.
Inputs are `words` float32 [batch, length, width], the vectors of the tokens, which are most of the weights and stay in
a file; `positions` int64 [length], and `mask` int32 [batch, length], 1 where a token counts and 0 where it is padding.
The output is `hidden` float32 [batch, length, width].
"""

import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic
from safetensors.numpy import load_file

Floats = npt.NDArray[np.float32]
Weights = Mapping[str, Floats]
Config = Mapping[str, Any]  # A model's `config.json`

_WORD_VECTORS = "embeddings.word_embeddings.weight"
_MANY = 60_000  # Tokens from which on their vectors are stored in 8 bits
_OPSET, _IR_VERSION = 20, 10
_CONTRIB = "com.microsoft"  # The operators that onnxruntime adds to those of ONNX


@dataclass(slots=True)
class _Graph:
    """Builder of nodes and initializers; every method returns the name of a tensor."""

    weights: Weights
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, name: str, value: npt.NDArray[np.float32] | npt.NDArray[np.int64]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def op(self, type_: str, inputs: Sequence[str], output: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(type_, list(inputs), [output], name=output, **attributes))
        return output

    def linear(self, x: str, output: str, *weights: str) -> str:
        """The products with several matrices side by side: as one, their input is quantised once."""
        columns = np.concatenate([self.weights[f"{weight}.weight"].T for weight in weights], axis=1)
        bias = np.concatenate([self.weights[f"{weight}.bias"] for weight in weights])
        product = self.op("MatMul", [x, self.constant(f"{output}.kernel", columns)], f"{output}.product")
        return self.op("Add", [product, self.constant(f"{output}.bias", bias)], output)

    def split(self, x: str, outputs: Sequence[str]) -> Sequence[str]:
        """Equal parts of the last axis."""
        self.nodes.append(helper.make_node("Split", [x], outputs, name=f"{x}.split", axis=-1, num_outputs=len(outputs)))
        return outputs

    def norm(self, x: str, weight: str, output: str, epsilon: float) -> str:
        scale = self.constant(f"{output}.scale", self.weights[f"{weight}.weight"])
        shift = self.constant(f"{output}.shift", self.weights[f"{weight}.bias"])
        return self.op("LayerNormalization", [x, scale, shift], output, axis=-1, epsilon=epsilon)


def _build(weights: Weights, config: Config) -> onnx.ModelProto:
    """The graph of a BERT encoder with these weights, named as in the published checkpoints."""
    graph = _Graph(weights)
    x = _embeddings(graph, config)
    for layer in range(config["num_hidden_layers"]):
        x = _layer(graph, x, layer, config)
    graph.op("Identity", [x], "hidden")
    inputs = [
        helper.make_tensor_value_info("positions", TensorProto.INT64, ["length"]),
        helper.make_tensor_value_info("mask", TensorProto.INT32, ["batch", "length"]),
        helper.make_tensor_value_info("words", TensorProto.FLOAT, ["batch", "length", config["hidden_size"]]),
    ]
    outputs = [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["batch", "length", config["hidden_size"]])]
    body = helper.make_graph(graph.nodes, "bert", inputs, outputs, graph.constants)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)])
    model.ir_version = _IR_VERSION
    return model


def _embeddings(graph: _Graph, config: Config) -> str:
    weights = graph.weights
    segment = weights["embeddings.token_type_embeddings.weight"][0]  # one text at a time: always segment A
    places = graph.constant("places", weights["embeddings.position_embeddings.weight"] + segment)
    place = graph.op("Gather", [places, "positions"], "place")
    return graph.norm(
        graph.op("Add", ["words", place], "embedded"), "embeddings.LayerNorm", "input", config["layer_norm_eps"]
    )


def _layer(graph: _Graph, x: str, layer: int, config: Config) -> str:
    at, to = f"encoder.layer.{layer}", f"layer{layer}"
    attended = graph.linear(_attention(graph, x, at, to, config), f"{to}.attended", f"{at}.attention.output.dense")
    residual = graph.op("Add", [attended, x], f"{to}.residual")
    middle = graph.norm(residual, f"{at}.attention.output.LayerNorm", f"{to}.middle", config["layer_norm_eps"])
    wide = graph.op("Gelu", [graph.linear(middle, f"{to}.up", f"{at}.intermediate.dense")], f"{to}.gelu")
    narrow = graph.op("Add", [graph.linear(wide, f"{to}.down", f"{at}.output.dense"), middle], f"{to}.sum")
    return graph.norm(narrow, f"{at}.output.LayerNorm", f"{to}.out", config["layer_norm_eps"])


def _attention(graph: _Graph, x: str, at: str, to: str, config: Config) -> str:
    roles = ("query", "key", "value")
    joint = graph.linear(x, f"{to}.roles", *(f"{at}.attention.self.{role}" for role in roles))
    parts = graph.split(joint, [f"{to}.{role}" for role in roles])
    no_bias = ""
    inputs = [*parts, no_bias, "mask"]
    return graph.op(
        "MultiHeadAttention", inputs, f"{to}.mixed", domain=_CONTRIB, num_heads=config["num_attention_heads"]
    )


def prepare(folder: Path, config: Config, path: Path, words: Path, *, in_int8: bool) -> None:
    """Build the graph and cache it beside the vectors of tokens; each file appears atomically.

    With the second feed-forward product and its outliers in float32, the mean cosine of int8 to the float32 model is
    .997 instead of .994, on processors with VNNI; with weights of 7 bits .995 on all: docs/decisions/0004.
    """
    stored = load_file(str(folder / "model.safetensors"))
    # some checkpoints prefix names, some store other floats
    weights = {name.removeprefix("bert."): value.astype(np.float32) for name, value in stored.items()}
    model = _build(weights, config)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made, vectors = Path(scratch) / "graph.onnx", Path(scratch) / "words.npy"
        if in_int8:
            logging.getLogger().addFilter(_no_advice)
            try:
                quantize_dynamic(
                    model,
                    made,
                    per_channel=True,
                    reduce_range=True,  # without it, products of processors without VNNI saturate
                    op_types_to_quantize=["MatMul"],
                    nodes_to_exclude=[f"layer{layer}.down.product" for layer in range(config["num_hidden_layers"])],
                    extra_options={"DefaultTensorType": TensorProto.FLOAT},  # of what MultiHeadAttention gives
                )
            finally:
                logging.getLogger().removeFilter(_no_advice)
        else:
            onnx.save(model, str(made))
        table = weights[_WORD_VECTORS]
        np.save(vectors, _in_bytes(table) if len(table) >= _MANY else table)
        vectors.replace(words)
        made.replace(path)


def _in_bytes(table: Floats) -> npt.NDArray[np.int8]:
    """Each row as integers of 8 bits, and in its last four bytes what they are multiplied by, float32."""
    steps = np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-12) / 127
    return np.concatenate([np.rint(table / steps).astype(np.int8), steps.astype(np.float32).view(np.int8)], axis=1)


def _no_advice(record: logging.LogRecord) -> bool:
    """Drops the quantizer's advice to pre-process: it is for models of unknown origin."""
    return "pre-processing before quantization" not in record.getMessage()
