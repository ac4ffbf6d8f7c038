"""Benchmark of the console over 20,000 capabilities in a browser: latency of each page, frame times of scrolling."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from experiments.benchmarks.runner import percentiles, service
from experiments.data.synthetic import registrations as synthetic
from mats.bootstrap.local import LocalStores
from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, Feedback, Outcome, Receipt
from mats.domain.ranking.blend import Verdict
from mats.evaluation.data.datasets import load
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings

_COUNT = 20_000
_ANSWERS = 5_000  # Answers of the last weeks, of which every second had no match
_REPORTED = 500  # Answers with an outcome of each of four results
_TIMES = 15
_ROWS = 1_000


def _script(name: str) -> str:
    """A function that a page evaluates."""
    return (Path(__file__).parent / "pages" / f"{name}.js").read_text(encoding="utf-8")


def console(data: Path, settings: Settings) -> dict[str, Any]:
    """Open every page of the console repeatedly, each time from another page and with a new query."""
    queries = [query.text for query in load(data / "tools").queries if len(query.text) < 200][:_TIMES]
    with registry_of(synthetic(_COUNT), settings, encoder=cached_encoder(settings)) as built:
        ids = list(built.stores.registry.ids())
        id = ids[0]
        _use(built.stores, ids)
        with _page(built.settings) as page:
            pages = {name: percentiles(times) for name, times in _pages(page, queries, id).items()}
            scrolled = page.evaluate(_script("scroll"), _ROWS)
            rows = page.locator(".rows > tr").count()
    return {
        "documents": _COUNT,
        "answers": _ANSWERS,
        "outcomes": 4 * _REPORTED,
        "times": _TIMES,
        "pages_ms": pages,
        "scroll": {"rows": rows, "frame_ms": percentiles(scrolled)},
    }


def _pages(page: Any, queries: Sequence[str], id: str) -> Mapping[str, list[float]]:
    """Milliseconds of each page; the last page opened is the whole registry."""

    def open_page(name: str, **route: str) -> float:
        return float(page.evaluate(_script("open"), [f"#/{name}?{urlencode(route)}"]))

    steps: Sequence[tuple[str, Callable[[int], float]]] = (
        ("home", lambda n: open_page("search")),
        ("search", lambda n: open_page("search", q=queries[n])),
        ("one beside the shortlist", lambda n: open_page("search", q=queries[n], open=id)),
        ("evaluation", lambda n: open_page("evaluation")),
        ("registry, sparse ones", lambda n: open_page("registry", show="sparse")),
        ("one beside the registry", lambda n: open_page("registry", show="sparse", open=id)),
        ("registry, filtered", lambda n: open_page("registry", q=f"{n:02}")),
        ("registry, a kind by trust", lambda n: open_page("registry", kind="tool", sort="-trust")),
        ("registry, a namespace", lambda n: open_page("registry", ns=id.partition("/")[0])),
        ("sources", lambda n: open_page("registry", view="sources")),
        ("use", lambda n: open_page("use")),
        ("compare", lambda n: open_page("compare", q=queries[n])),
        ("an import", lambda n: open_page("import")),
        ("an edit", lambda n: open_page("edit", id=id)),
        ("registry", lambda n: open_page("registry")),
    )
    taken: dict[str, list[float]] = {name: [] for name, _ in steps}
    for n in range(_TIMES):
        for name, step in steps:
            taken[name].append(step(n))
    return taken


def _use(stores: LocalStores, ids: Sequence[Id]) -> None:
    """Store answers of four results each over the last 25 days, and outcomes of some of them."""
    now, made = datetime.now(UTC), []
    for number in range(_ANSWERS):
        shown = tuple(ids[(number * 37 + place * 911) % len(ids)] for place in range(4))
        made.append(
            Receipt(
                query_id=f"answer-{number}",
                text=f"request {number % 400} for thing {number % 40}",
                caller=f"caller-{number % 9}",
                audiences=frozenset(),
                at=(now - timedelta(minutes=number * 7)).isoformat(timespec="seconds"),
                shown=shown,
                verdict=Verdict.NONE if number % 2 else Verdict.MATCH,
                nearest=shown[0],
                relevance=0.1,
            )
        )
    stores.receipt_log.put_all(made[::-1])
    for receipt in made[:_REPORTED]:
        outcomes = tuple(map(Outcome, receipt.shown, Event))
        stores.outcomes.record(
            receipt, Feedback(query_id=receipt.query_id, caller=receipt.caller, outcomes=outcomes), receipt.at
        )


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
