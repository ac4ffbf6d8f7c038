"""A BERT encoder as an ONNX graph, built from the published weights without a framework.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers" (2019): learned positions, post-norm, GELU.
Inputs are `ids` int64 [batch, length], `positions` int64 [length] and `bias` float32 [batch, 1, 1, length], 0 where a
token counts and very negative where it is padding; the output is `hidden` float32 [batch, length, width].
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Weights = Mapping[str, npt.NDArray[np.float32]]

_OPSET, _IR_VERSION = 20, 10


@dataclass(frozen=True, slots=True)
class BertShape:
    """The numbers of a model's `config.json` that the graph depends on."""

    layers: int
    heads: int
    width: int
    epsilon: float


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

    def linear(self, x: str, weight: str, output: str) -> str:
        kernel = self.constant(f"{output}.kernel", self.weights[f"{weight}.weight"].T)
        product = self.op("MatMul", [x, kernel], f"{output}.product")
        return self.op("Add", [product, self.constant(f"{output}.bias", self.weights[f"{weight}.bias"])], output)

    def norm(self, x: str, weight: str, output: str, epsilon: float) -> str:
        scale = self.constant(f"{output}.scale", self.weights[f"{weight}.weight"])
        shift = self.constant(f"{output}.shift", self.weights[f"{weight}.bias"])
        return self.op("LayerNormalization", [x, scale, shift], output, axis=-1, epsilon=epsilon)


def build(weights: Weights, shape: BertShape) -> onnx.ModelProto:
    """The graph of a BERT encoder with these weights, named as in the published checkpoints."""
    graph = _Graph(weights)
    x = _embeddings(graph, shape)
    graph.constant("split", np.array([0, 0, shape.heads, shape.width // shape.heads], np.int64))
    graph.constant("join", np.array([0, 0, shape.width], np.int64))
    graph.constant("temperature", np.array(1 / np.sqrt(shape.width // shape.heads), np.float32))
    for layer in range(shape.layers):
        x = _layer(graph, x, layer, shape)
    graph.op("Identity", [x], "hidden")
    inputs = [
        helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"]),
        helper.make_tensor_value_info("positions", TensorProto.INT64, ["length"]),
        helper.make_tensor_value_info("bias", TensorProto.FLOAT, ["batch", 1, 1, "length"]),
    ]
    outputs = [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["batch", "length", shape.width])]
    body = helper.make_graph(graph.nodes, "bert", inputs, outputs, graph.constants)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", _OPSET)])
    model.ir_version = _IR_VERSION
    return model


def _embeddings(graph: _Graph, shape: BertShape) -> str:
    weights = graph.weights
    words = graph.constant("words", weights["embeddings.word_embeddings.weight"])
    segment = weights["embeddings.token_type_embeddings.weight"][0]  # one text at a time: always segment A
    places = graph.constant("places", weights["embeddings.position_embeddings.weight"] + segment)
    word = graph.op("Gather", [words, "ids"], "word")
    place = graph.op("Gather", [places, "positions"], "place")
    return graph.norm(graph.op("Add", [word, place], "embedded"), "embeddings.LayerNorm", "input", shape.epsilon)


def _layer(graph: _Graph, x: str, layer: int, shape: BertShape) -> str:
    at, to = f"encoder.layer.{layer}", f"layer{layer}"
    attended = graph.linear(_attention(graph, x, at, to), f"{at}.attention.output.dense", f"{to}.attended")
    residual = graph.op("Add", [attended, x], f"{to}.residual")
    middle = graph.norm(residual, f"{at}.attention.output.LayerNorm", f"{to}.middle", shape.epsilon)
    wide = graph.op("Gelu", [graph.linear(middle, f"{at}.intermediate.dense", f"{to}.up")], f"{to}.gelu")
    narrow = graph.op("Add", [graph.linear(wide, f"{at}.output.dense", f"{to}.down"), middle], f"{to}.sum")
    return graph.norm(narrow, f"{at}.output.LayerNorm", f"{to}.out", shape.epsilon)


def _attention(graph: _Graph, x: str, at: str, to: str) -> str:
    def heads(role: str, order: Sequence[int]) -> str:
        flat = graph.linear(x, f"{at}.attention.self.{role}", f"{to}.{role}")
        split = graph.op("Reshape", [flat, "split"], f"{flat}.split")
        return graph.op("Transpose", [split], f"{flat}.heads", perm=order)

    query, key, value = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
    scores = graph.op("Mul", [graph.op("MatMul", [query, key], f"{to}.scores"), "temperature"], f"{to}.scaled")
    shares = graph.op("Softmax", [graph.op("Add", [scores, "bias"], f"{to}.masked")], f"{to}.shares", axis=-1)
    mixed = graph.op("MatMul", [shares, value], f"{to}.mixed")
    turned = graph.op("Transpose", [mixed], f"{to}.turned", perm=[0, 2, 1, 3])
    return graph.op("Reshape", [turned, "join"], f"{to}.joined")


def sensitive_nodes(shape: BertShape) -> list[str]:
    """Matrix products too sensitive for int8: attention, and the second feed-forward with its outliers.

    With these in float32 the mean cosine to the float32 model is .997 instead of .994: docs/decisions/0004.
    """
    return [
        name for layer in range(shape.layers)
        for name in (f"layer{layer}.scores", f"layer{layer}.mixed", f"layer{layer}.down.product")
    ]  # fmt: skip
