"""Benchmark of `mats import` over the tools: alone, and beside a service that answers and shows its console's pages."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote

import urllib3

from experiments.benchmarks.runner import MatsCommand, service
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
    corpus, before = (str(data / name / "corpus.jsonl.gz") for name in ("tools", _THERE_BEFORE))
    queries = [query.text[:2_000] for query in load(data / "tools").queries]
    with tempfile.TemporaryDirectory(prefix="mats-bench-") as folder:
        alone = MatsCommand(replace(settings, home=Path(folder, "alone")), "import", corpus).finish_import()
        shared = replace(settings, home=Path(folder, "beside"))
        MatsCommand(replace(shared, encoder="none"), "import", before).finish()
        with service(shared.to_env()) as address:
            requests = _Requests(address, queries)
            calm = requests.measure(lambda rounds: rounds == _CALM)
            command = MatsCommand(shared, "import", corpus)
            busy = requests.measure(lambda rounds: command.process.poll() is not None)
            beside = {**command.finish_import(), "calm_ms": calm, "importing_ms": busy}
    return {"alone": alone, "beside a service": beside}


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
