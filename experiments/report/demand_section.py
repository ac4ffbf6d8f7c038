"""The section about requests that nothing serves, and whether `mats demand` names them."""

from collections.abc import Iterator

from experiments.report.cells import Section, Table, number, percent
from experiments.report.results import not_run_reason
from mats.evaluation.results import Json


def demand(results: Json, paper: Json) -> Section:
    ran = not not_run_reason(results)
    return Section(
        id="demand",
        title="Demand",
        summary="Families of capabilities are removed from a registry, a large one and one of what the other requests "
        "need, and their requests asked among others that the rest serves. A family is named if at least half of the "
        "requests of some group are its own; a group is false if most of its requests are served. Some callers report "
        "what became of an answer.",
        tables=(_shares(results),) if ran else (),
    )


def _shares(results: Json) -> Table:
    wrong = percent(results["mistaken_reports"])
    return Table(
        id="demand-shares",
        caption="Families named and groups that are false, by the share of callers that report, %",
        head=("registry", "capabilities", "report", "named", "false"),
        rows=tuple(row for name, one in results["registries"].items() for row in _rows(name, one)),
        notes=(
            f"{results['families']} families among {number(results['others'])} other requests, over several choices "
            f"of families; {wrong} % of the reports are wrong.",
        ),
    )


def _rows(name: str, registry: Json) -> Iterator[tuple[str, ...]]:
    sizes = [row["capabilities"] for row in registry["rows"]]
    for mean in registry["mean"]:
        yield name, number(sum(sizes) / len(sizes)), *map(percent, (mean["reporting"], mean["named"], mean["false"]))
