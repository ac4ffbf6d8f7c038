"""The first pass of a search over many vectors: leading components only, as integers of 8 bits.

Vectors are rotated to their principal axes. Blocks of rows are constants of graphs of onnxruntime, which multiplies
them in less time than NumPy multiplies floats, and in half of the memory. docs/decisions/0059.
"""

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from mats.adapters.sqlite.arrays import BLOCK, Copied, Floats, in_halves

_LEADING = 128  # Components of the first pass
_LARGEST = 63
"""Of a component: products of 7 with 8 bits, added in pairs, are exact on processors without instructions for them."""
_ZERO = 128  # Stands for 0 in a query, which has no negative numbers
_FINE = 128  # A query is two rows of numbers: multiples of so many, and what is left
_LEAST = 1e-30  # In place of a step of 0
_LEAST_IN_HALVES = 8  # Blocks, from which on two cores multiply
_OPSET, _IR_VERSION = 20, 10

Products = npt.NDArray[np.int32]


class FirstPass(Copied):
    """Rows by number, in blocks; of rows that have never been computed, products are 0."""

    def __init__(self, sample: Floats) -> None:
        """Axes and scales of vectors like these."""
        mean = sample.mean(axis=0)
        # the directions in which the sample's squared products are largest on average, as columns; ascending
        _, axes = np.linalg.eigh((sample.T @ sample).astype(np.float64))
        self._axes = np.ascontiguousarray(axes[:, : -_LEADING - 1 : -1], np.float32)
        self._mean: Floats = mean @ self._axes
        """Subtracted from every row, which takes the same number from every product."""
        largest = np.abs(sample @ self._axes - self._mean).max(axis=0)
        self._steps: Floats = np.maximum(largest / _LARGEST, _LEAST)
        self._blocks: dict[int, onnxruntime.InferenceSession] = {}

    def compute(self, number: int, vectors: Floats) -> None:
        """Add or replace a block by the vectors of its rows, which may be fewer in the last block."""
        rows = np.zeros((BLOCK, len(self._steps)), np.float32)
        np.matmul(vectors, self._axes, out=rows[: len(vectors)])
        rows -= self._mean
        rows /= self._steps
        np.clip(np.rint(rows, out=rows), -_LARGEST, _LARGEST, out=rows)
        self._blocks[number] = _session(np.ascontiguousarray(rows.T, np.int8))

    def products(self, vector: Floats, size: int) -> Products:
        """Of the first `size` rows; they have the order of the products with the leading components, nearly."""
        weights = (vector @ self._axes) * self._steps
        unit = max(float(np.abs(weights).max()) / (_ZERO - 1) / _FINE, _LEAST)
        exact = np.rint(weights / unit)
        coarse = np.rint(exact / _FINE)
        query = {"query": (np.stack([coarse, exact - coarse * _FINE]) + _ZERO).astype(np.uint8)}
        found = np.zeros(size, np.int32)
        blocks = [(number * BLOCK, block) for number, block in self._blocks.items() if number * BLOCK < size]

        def multiply(first: int, last: int) -> None:
            for start, block in blocks[first:last]:
                part = found[start : start + BLOCK]
                high, low = block.run(None, query)[0][:, : len(part)]
                np.multiply(high, _FINE, out=part)
                part += low

        in_halves(multiply, len(blocks), least=_LEAST_IN_HALVES)
        return found


def _session(columns: npt.NDArray[np.int8]) -> onnxruntime.InferenceSession:
    """The product of a query with these columns; the constant is stored in the form that is read fastest."""
    constants = [numpy_helper.from_array(columns, "columns"), numpy_helper.from_array(np.uint8(_ZERO), "zero")]
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["query", "columns", "zero"], ["products"])],
        "first pass",
        [helper.make_tensor_value_info("query", TensorProto.UINT8, [2, columns.shape[0]])],
        [helper.make_tensor_value_info("products", TensorProto.INT32, [2, columns.shape[1]])],
        constants,
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
