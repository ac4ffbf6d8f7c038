"""Benchmark of `mats import` over the tools: alone, and beside a service that answers and shows its console's pages."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote

import urllib3

from experiments.benchmarks.processes import module_process
from mats.evaluation.data.datasets import load
from mats.evaluation.percentiles import percentiles
from mats.settings import Settings

_THERE_BEFORE = "models"
"""The data set that the service has when the import begins, findable by words."""
_CALM = 20
"""Rounds of requests before the import."""
_PAUSE_S = 0.05
_PAGES = {
    "overview": "/registry",
    "list": "/registry/capabilities?limit=100",
    "filtered list": "/registry/capabilities?limit=100&q=get",
}


def importing(data: Path, settings: Settings) -> dict[str, Any]:
    """Seconds until all is findable by words and until it is complete; milliseconds of requests one by one."""
    corpus, queries = data / "tools" / "corpus.jsonl.gz", [query.text[:2_000] for query in load(data / "tools").queries]
    with tempfile.TemporaryDirectory(prefix="mats-bench-") as folder:
        alone = _times(*_finish(_begin(corpus, replace(settings, home=Path(folder, "alone")))))
        beside = _beside_a_service(corpus, data, queries, replace(settings, home=Path(folder, "beside")))
    return {"alone": alone, "beside a service": beside}


def _begin(corpus: Path, settings: Settings) -> "tuple[subprocess.Popen[str], float]":
    """A process that imports a corpus, and when it was started."""
    command = [sys.executable, "-m", "mats.local.cli", "import", str(corpus), "--json"]
    environment = {**os.environ, **settings.to_env()}
    began = time.perf_counter()
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ), began


def _finish(started: "tuple[subprocess.Popen[str], float]") -> tuple[dict[str, Any], float]:
    """What the process has printed, and its seconds."""
    process, began = started
    printed, _ = process.communicate()
    return json.loads(printed), time.perf_counter() - began


def _times(outcome: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Both times begin with the process."""
    started = seconds - outcome["seconds"]
    return {
        "documents": outcome["new"],
        "findable_s": round(started + outcome["findable_seconds"], 1),
        "complete_s": round(seconds, 1),
    }


def _beside_a_service(corpus: Path, data: Path, queries: Sequence[str], settings: Settings) -> dict[str, Any]:
    _finish(_begin(data / _THERE_BEFORE / corpus.name, replace(settings, encoder="none")))
    with module_process("mats.local.cli", "serve", "--port", "0", env=settings.to_env()) as (_, greeting):
        found = re.search(r"http://[\d.:]+", greeting)
        if found is None:
            raise SystemExit(f"the service did not start: {greeting}")
        requests = _Requests(found.group(), queries)
        calm = requests.measure(lambda rounds: rounds == _CALM)
        process, began = _begin(corpus, settings)
        busy = requests.measure(lambda rounds: process.poll() is not None)
        times = _times(*_finish((process, began)))
    return {**times, "calm_ms": calm, "importing_ms": busy}


class _Requests:
    """Pages of the console and answers, one after another."""

    def __init__(self, address: str, queries: Sequence[str]) -> None:
        self._address, self._queries, self._http = address, cycle(queries), urllib3.PoolManager(retries=False)

    def measure(self, is_over: Callable[[int], bool]) -> dict[str, dict[str, float]]:
        """Percentiles of each kind of request in milliseconds, until it is over; the first round is not counted."""
        taken: dict[str, list[float]] = {}
        for rounds in count():
            if is_over(rounds):
                break
            taken_now = {page: self._ms("GET", path) for page, path in _PAGES.items()}
            taken_now["answer"] = self._ms("POST", "/discover", {"query": next(self._queries)})
            for name, ms in taken_now.items() if rounds else ():
                taken.setdefault(name, []).append(ms)
        return {name: {**percentiles(ms, 50, 95, 100), "requests": len(ms)} for name, ms in taken.items()}

    def _ms(self, method: str, path: str, body: object = None) -> float:
        time.sleep(_PAUSE_S)
        began = time.perf_counter()
        answer = self._http.request(method, self._address + quote(path, safe="/?=&"), json=body, timeout=60)
        assert answer.status == 200, answer.data[:500]
        return (time.perf_counter() - began) * 1000
