"""Benchmark of the console over 20,000 capabilities in a browser: latency of each page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from experiments.benchmarks.runner import percentiles, service
from experiments.data.synthetic import registrations as synthetic
from mats.evaluation.data.datasets import load
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings

_COUNT = 20_000
_TIMES = 15


def _script(name: str) -> str:
    """A function that a page evaluates."""
    return (Path(__file__).parent / "pages" / f"{name}.js").read_text(encoding="utf-8")


def console(data: Path, settings: Settings) -> dict[str, Any]:
    """Open every page of the console repeatedly, each time from another page and with a new query."""
    queries = [query.text for query in load(data / "tools").queries if len(query.text) < 200][:_TIMES]
    with registry_of(synthetic(_COUNT), settings, encoder=cached_encoder(settings)) as built:
        id = next(iter(built.stores.registry.ids()))
        with _page(built.settings) as page:
            pages = {name: percentiles(times) for name, times in _pages(page, queries, id).items()}
    return {
        "documents": _COUNT,
        "times": _TIMES,
        "pages_ms": pages,
    }


def _pages(page: Any, queries: Sequence[str], id: str) -> Mapping[str, list[float]]:
    """Milliseconds of each page; the last page opened is the whole registry."""

    def open_page(name: str, **route: str) -> float:
        return float(page.evaluate(_script("open"), [f"#/{name}?{urlencode(route)}"]))

    steps: Sequence[tuple[str, Callable[[int], float]]] = (
        ("home", lambda n: open_page("search")),
        ("search", lambda n: open_page("search", q=queries[n])),
        ("one beside the shortlist", lambda n: open_page("search", q=queries[n], open=id)),
        ("registry, sparse ones", lambda n: open_page("registry", show="sparse")),
        ("one beside the registry", lambda n: open_page("registry", show="sparse", open=id)),
        ("registry, filtered", lambda n: open_page("registry", q=f"{n:02}")),
        ("registry, a kind by trust", lambda n: open_page("registry", kind="tool", sort="-trust")),
        ("registry, a namespace", lambda n: open_page("registry", ns=id.partition("/")[0])),
        ("review", lambda n: open_page("review")),
        ("an import", lambda n: open_page("import")),
        ("an edit", lambda n: open_page("edit", id=id)),
        ("registry", lambda n: open_page("registry")),
    )
    taken: dict[str, list[float]] = {name: [] for name, _ in steps}
    for n in range(_TIMES):
        for name, step in steps:
            taken[name].append(step(n))
    return taken


@contextmanager
def _page(settings: Settings) -> Iterator[Any]:
    """The console in a browser over a new service without waiting changes."""
    from tests.console.browser import Looks, installed, launched, watched

    path = installed()
    if path is None:
        raise SystemExit("no browser: install chromium, or name one in MATS_BROWSER")
    with (
        service(settings.to_env()) as address,
        launched(path) as browser,
        watched(browser, address, Looks()) as opened,
    ):
        page = opened.open("#/registry")
        page.evaluate(_script("idle"))
        yield page
        if complaints := opened.complaints():
            raise SystemExit("\n".join(complaints))
