"""The console over 20,000 capabilities in a real browser: how soon a page is there, how evenly its list scrolls."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from mats.evaluation.benchmarks.processes import module_process
from mats.evaluation.data.datasets import load
from mats.evaluation.data.synthetic import registrations as synthetic
from mats.evaluation.systems.cached_encoder import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings

_COUNT = 20_000
_TIMES = 15
_ROWS = 1_000

_SHOWN = """
async ([hash]) => {
  const began = performance.now();
  location.hash = hash;
  const main = document.getElementById("main");
  while (main.dataset.shown !== location.hash) {
    if (performance.now() - began > 30_000) throw new Error(`${hash} does not come`);
    await new Promise(requestAnimationFrame);
  }
  await new Promise(requestAnimationFrame);
  await new Promise((done) => setTimeout(done));
  return performance.now() - began;
}
"""
"""From following a link until all of what it leads to has been painted."""

_SETTLED = """
async () => {
  while ((await (await fetch("registry")).json()).changes.waiting) await new Promise((done) => setTimeout(done, 250));
}
"""
"""Until the service has seen that what it was filled with needs nothing more."""

_SCROLLED = """
async (rows) => {
  const gaps = [], began = performance.now();
  let last = await new Promise(requestAnimationFrame);
  while (document.querySelectorAll(".rows > li").length < rows) {
    if (last - began > 60_000) throw new Error("the list does not grow");
    scrollBy(0, 400);
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  return gaps;
}
"""
"""Milliseconds between frames while the list is scrolled until it has so many rows."""


def console(data: Path, settings: Settings) -> dict[str, Any]:
    """Every page of the console, opened from another one again and again; each answer of the search is a new one."""
    queries = [query.text for query in load(data / "tools").queries if len(query.text) < 200][:_TIMES]
    with registry_of(synthetic(_COUNT), settings, encoder=cached_encoder(settings)) as built:
        id = next(iter(built.stores.registry.ids()))
        with _page(built.settings) as page:
            pages = {name: _spread(times) for name, times in _pages(page, queries, id).items()}
            scrolled = page.evaluate(_SCROLLED, _ROWS)
            rows = page.locator(".rows > li").count()
    return {
        "documents": _COUNT,
        "times": _TIMES,
        "pages_ms": pages,
        "scroll": {"rows": rows, "frame_ms": _spread(scrolled)},
    }


def _pages(page: Any, queries: Sequence[str], id: str) -> Mapping[str, list[float]]:
    """Milliseconds of each page; the last one shown is the registry, all of it."""

    def shown(name: str, **route: str) -> float:
        return float(page.evaluate(_SHOWN, [f"#/{name}?{urlencode(route)}"]))

    steps: Sequence[tuple[str, Callable[[int], float]]] = (
        ("search", lambda n: shown("search", q=queries[n])),
        ("one beside the shortlist", lambda n: shown("search", q=queries[n], open=id)),
        ("evaluation", lambda n: shown("evaluation")),
        ("registry, sparse ones", lambda n: shown("registry", show="sparse")),
        ("one beside the registry", lambda n: shown("registry", show="sparse", open=id)),
        ("registry, filtered", lambda n: shown("registry", q=f"{n:02}")),
        ("exposure", lambda n: shown("registry", view="exposure")),
        ("an edit", lambda n: shown("edit", id=id)),
        ("registry", lambda n: shown("registry")),
    )
    taken: dict[str, list[float]] = {name: [] for name, _ in steps}
    for n in range(_TIMES):
        for name, step in steps:
            taken[name].append(step(n))
    return taken


@contextmanager
def _page(settings: Settings) -> Iterator[Any]:
    """The console in a browser, over a service of its own, once that has read what it needs."""
    from tests.console.browser import Looks, installed, launched, watched  # noqa: PLC0415 - Playwright, when asked for

    path = installed()
    if path is None:
        raise SystemExit("there is no browser: install chromium, or name one in MATS_BROWSER")
    with (
        module_process("mats.local.cli", "serve", "--port", "0", env=settings.to_env()) as (_, greeting),
        launched(path) as browser,
    ):
        found = re.search(r"http://[\d.:]+", greeting)
        if found is None:
            raise SystemExit(f"the service did not start: {greeting}")
        with watched(browser, found.group(), Looks()) as opened:
            page = opened.open("#/registry")
            page.evaluate(_SETTLED)
            yield page
            if complaints := opened.complaints():
                raise SystemExit("\n".join(complaints))


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {name: round(float(np.percentile(values, p)), 1) for name, p in (("p50", 50), ("p95", 95), ("max", 100))}
