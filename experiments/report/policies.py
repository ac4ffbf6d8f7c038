"""The table of what each policy is worth; `python -m experiments ablate` measures it."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.report.cells import NONE, number
from mats.evaluation.results import Json

HEAD = (
    "policy", "judged: first", "judged: among 15", "own requests", "with / without", "gained / lost", "must do nothing"
)  # fmt: skip


def rows_of(name: str, policy: Json) -> list[tuple[str, ...]]:
    """The cells of a policy: a row for each of its own sorts of requests and its prices, over all sets together."""
    judged = (_change(policy["first"]), _change(policy["among"]))
    silent = _change(policy["silent"]) if policy["silent"]["requests"] else NONE
    prices = by_sort(policy["comparisons"], "price")
    own = by_sort(policy["comparisons"], "own") | {what: one for what, one in prices.items() if one["lost"]}
    if not own:
        return [(name, *judged, NONE, NONE, NONE, silent)]
    return [
        (
            *((name, *judged) if place == 0 else ("", "", "")),
            f"{what} ({number(one['requests'])})",
            f"{one['with']:g} / {one['without']:g}",
            _change(one),
            silent if place == 0 else "",
        )
        for place, (what, one) in enumerate(own.items())
    ]


def by_sort(comparisons: Sequence[Json], part: str) -> dict[str, dict[str, float]]:
    """The sums over all sets of each sort of requests of one part."""
    sorts: dict[str, dict[str, float]] = {}
    for each in comparisons:
        if each["part"] == part:
            sums = sorts.setdefault(each["what"], dict.fromkeys(("requests", "with", "without", "gained", "lost"), 0))
            for name in sums:
                sums[name] += each[name]
    return sorts


def _change(total: Mapping[str, Any]) -> str:
    return f"+{total['gained']:g} / −{total['lost']:g}"


def table(results: Json) -> str:
    """The rows as Markdown, for the page of results."""
    lines = [f"| {' | '.join(HEAD)} |", "|---|" + "---:|" * 2 + "---|" + "---:|" * 3]
    lines += [f"| {' | '.join(row)} |" for name, one in results["policies"].items() for row in rows_of(name, one)]
    source = results["provenance"]
    told = (
        f"Measured at commit {source['commit']} in {results['seconds']:.0f} s. In sight: the judged sets and each "
        "policy's own requests; the operations here are the half that was kept back."
    )
    return "\n".join((*lines, "", told))
