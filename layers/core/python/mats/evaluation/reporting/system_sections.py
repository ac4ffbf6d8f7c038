"""Sections about whole systems: the main table, the size of the registry, and the causes of misses."""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.evaluation.reporting.cells import NONE, NOT_RUN, Figure, Section, Table, comma_list, measure, number, percent
from mats.evaluation.reporting.figures import factors, sweep
from mats.evaluation.reporting.results import Json, measured_only, not_run_notes, not_run_reason

INTERVALS = "In per cent, with bootstrap 95 % intervals over the queries."
_OTHERS = ("match@3", "match@5", "match@15", "mrr", "recall@15")
_MISSES = {
    "retrieval_miss": "no relevant candidate",
    "picked_another": "another first",
    "several_gold": "several relevant",
}


def main(results: Json, paper: Json) -> Section:
    """Match@1 of every system on every set with the paper's numbers, and the other measures."""
    sets = results["sets"]
    return Section(
        id="main",
        title="Main table",
        summary=f"Every system on every set, {number(results['k'])} candidates per query. {INTERVALS}",
        tables=(_match_at_1(sets, paper), _others(sets, paper)),
    )


def _match_at_1(sets: Json, paper: Json) -> Table:
    systems = _systems(sets)
    rows: list[tuple[str, ...]] = []
    theirs = set()
    for name, one in sets.items():
        rows.append((_set_label(name, one), *(_system(one["systems"].get(system), "match@1") for system in systems)))
        if name in paper["sets"]:
            theirs.add(len(rows))
            row = paper["sets"][name]["row"]
            known = paper["main"]["rows"][row]
            numbers = known["match@1"]
            cells = (percent(numbers.get(paper["systems"].get(system, ""))) for system in systems)
            rows.append((f"paper: {row} ({known['registry']:,} / {known['queries']:,})", *cells))
    return Table(
        id="main-match-1",
        caption="Match@1 by set and system, % (capabilities / queries)",
        head=("set", *systems),
        rows=tuple(rows),
        paper_rows=frozenset(theirs),
        notes=(*_differences(sets, paper), *_not_run(sets), *_unregistered_note(sets), *_failure_note(sets)),
    )


def _others(sets: Json, paper: Json) -> Table:
    rows: list[tuple[str, ...]] = []
    theirs = set()
    for name, one in sets.items():
        for system, result in measured_only(one["systems"]).items():
            rows.append((name, system, *(measure(result["metrics"], m) for m in _OTHERS)))
            known = _of_paper(paper, name, system)
            if known:
                theirs.add(len(rows))
                rows.append((name, f"paper: {paper['systems'][system]}", *(percent(known.get(m)) for m in _OTHERS)))
    return Table(
        id="main-others",
        caption="The other measures, %",
        head=("set", "system", *_OTHERS),
        rows=tuple(rows),
        labels=2,
        paper_rows=frozenset(theirs),
        notes=(
            "The paper's columns for Match@15 and Recall@15 stand for different systems: retrievers alone have "
            "Match@15, whole pipelines Recall@15.",
        ),
    )


def _of_paper(paper: Json, name: str, system: str) -> dict[str, float]:
    """The paper's measures of a system beside Match@1."""
    theirs = paper["systems"].get(system, "")
    if name not in paper["sets"] or not theirs:
        return {}
    row = paper["sets"][name]["row"]
    tables = {**paper["ranking"]["rows"][row], **paper["at_15"]["rows"][row]}
    return {measure: systems[theirs] for measure, systems in tables.items() if theirs in systems}


def _systems(sets: Json) -> tuple[str, ...]:
    return tuple(dict.fromkeys(system for one in sets.values() for system in one["systems"]))


def _system(result: Mapping[str, Any] | None, name: str) -> str:
    if result is None:
        return NONE
    return NOT_RUN if not_run_reason(result) else measure(result["metrics"], name)


def _set_label(name: str, one: Json) -> str:
    return f"{name} ({one['documents']:,} / {one['queries']:,})"


def _differences(sets: Json, paper: Json) -> Iterator[str]:
    """The differences between our data and the paper's, one sentence per set."""
    differences = [paper["sets"][name]["differs"] for name in sets if name in paper["sets"]]
    if differences:
        yield (
            f"The paper's numbers ({paper['main']['table']}) come from other data: compare systems within a set, not "
            f"our numbers with the paper's. {' '.join(differences)}"
        )
        yield (
            "The paper's BGE (five fields) stands under `dense`, Ours+BM25 and Ours+BGE under `pipeline-bm25` and "
            "`pipeline-dense`; ours use another encoder."
        )


def _not_run(sets: Json) -> Iterator[str]:
    return not_run_notes((system, value) for one in sets.values() for system, value in one["systems"].items())


def _unregistered_note(sets: Json) -> Iterator[str]:
    counts = [f"{name} {one['unregistered_gold']:,}" for name, one in sets.items() if one.get("unregistered_gold")]
    if counts:
        yield f"Labels that are not in the registry and count as missed: {comma_list(counts)}."


def _failure_note(sets: Json) -> Iterator[str]:
    counts = [
        f"{system} on {name} {result['failed']:,}"
        for name, one in sets.items()
        for system, result in measured_only(one["systems"]).items()
        if result.get("failed")
    ]
    if counts:
        yield f"Queries that failed and count as missed: {comma_list(counts)}."


def scale(results: Json, paper: Json) -> Section:
    """Accuracy against the size of the registry."""
    systems, sizes = measured_only(results["systems"]), results["sizes"]
    known = paper["scale"]
    rows = [(name, *_by_size(points, sizes)) for name, points in systems.items()]
    theirs = frozenset(range(len(rows), len(rows) + len(known["systems"])))
    for system, (smallest, largest) in known["systems"].items():
        ends = {known["sizes"][0]: smallest, known["sizes"][1]: largest}
        last = len(sizes) - 1
        cells = (percent(ends.get(size if i < last else known["sizes"][1])) for i, size in enumerate(sizes))
        rows.append((f"paper: {system}", *cells))
    table = Table(
        id="scale-match-1",
        caption="Match@1 by size of the registry, %",
        head=("system", *(number(size) for size in sizes)),
        rows=tuple(rows),
        paper_rows=theirs,
        notes=(
            f"The paper ({known['table']}) names the ends of its sweep, {known['sizes'][0]:,} and "
            f"{known['sizes'][1]:,} tools of its own data; the latter stands under our largest size.",
            *_crossover(results["crossover"], known["crossover"]),
            *not_run_notes(results["systems"].items()),
        ),
    )
    drawn = (
        Figure(
            id="scale",
            caption=f"Accuracy as the registry grows, {results['queries']:,} queries; bands are 95 % intervals.",
            alt=f"Match@1 against registry size for {comma_list(systems)}, and beside it the share of queries with a "
            "relevant candidate and the share of those where it is first.",
            draw=lambda: sweep(results),
        ),
    )
    return Section(
        id="scale",
        title="Accuracy against the size of the registry",
        summary=f"{results['queries']:,} queries of `{results['dataset']}`; their {results['gold']:,} relevant "
        f"capabilities are in every registry that can hold them; seeded distractors fill the rest. {INTERVALS}",
        tables=(table,),
        figures=drawn if systems else (),
    )


def _by_size(points: Any, sizes: Any) -> Iterator[str]:
    at = {point["size"]: point["match@1"] for point in points}
    return (percent(at.get(size)) for size in sizes)


def _crossover(found: Json, theirs: int) -> Iterator[str]:
    if why := not_run_reason(found):
        yield f"Crossover not measured: {why}"
    elif found["size"] is None:
        yield f"{found['two_stage']} never stays ahead of {found['single']}; the paper's crossover is about {theirs}."
    else:
        yield (
            f"{found['two_stage']} is ahead of {found['single']} from {found['size']:,} capabilities on; "
            f"the paper's crossover is about {theirs}."
        )


def decomposition(results: Json, paper: Json) -> Section:
    """Recall of the first stage, accuracy of the order, and the causes of misses."""
    sets = results["sets"]
    rows = tuple(
        (name, system, *_factors(result))
        for name, one in sets.items()
        for system, result in measured_only(one["systems"]).items()
    )
    known = paper["decomposition"]["misses_at_retrieval"]
    said = comma_list(f"{100 * share:.0f} % on {row}" for row, share in known.items())
    low, high = paper["scale"]["conditional"]
    table = Table(
        id="decomposition-factors",
        caption="A relevant candidate × first if there is one = Match@1, %; and the causes of misses",
        head=("set", "system", "candidate", "then first", "Match@1", "misses at retrieval", *_MISSES.values()),
        rows=rows,
        labels=2,
        notes=(
            f"The paper loses {said} of its misses at retrieval, and its reranker ranks a relevant candidate first in "
            f"{100 * low:.0f} to {100 * high:.0f} % of queries.",
            *_not_run(sets),
        ),
    )
    drawn = Figure(
        id="decomposition",
        caption="Share of queries with a relevant candidate, and of those where it is first, with 95 % intervals.",
        alt=f"Paired bars for every system on {comma_list(sets)}: share of queries with a relevant candidate, and "
        "share of those where it is first.",
        draw=lambda: factors(sets),
    )
    return Section(
        id="decomposition",
        title="Causes of misses",
        summary=f"Recall of the first stage at k = {number(results['k'])}, times the accuracy of the order of its "
        f"candidates. {INTERVALS}",
        tables=(table,),
        figures=(drawn,) if rows else (),
    )


def _factors(result: Json) -> tuple[str, ...]:
    return (
        percent(result["candidates"]),
        percent(result["conditional"]),
        percent(result["match@1"]),
        percent(result["misses_at_retrieval"]),
        *(number(result["categories"].get(kind)) for kind in _MISSES),
    )
