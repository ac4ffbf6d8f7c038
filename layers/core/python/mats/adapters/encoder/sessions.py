"""Runs of one model by onnxruntime: each on two cores while there is one at a time, else side by side on one each."""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from mats.adapters.threads import DaemonThreads, cores

_CORES_OF_ONE = 2
"""A run on two cores takes two thirds of the time of a run on one, but two of them wait for each other."""
_CROWDED_S = 0.1
"""So long after two runs met, others are expected beside each."""
_SPIN_US = 200
"""So long a thread waits for the next operator without giving up its core."""
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
                self._side_by_side = DaemonThreads(1, "encoder-session").submit(_session, self._path, 1)
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
