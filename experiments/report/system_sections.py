"""Sections about whole systems: main table, size of the registry, causes of misses."""

from collections.abc import Iterator, Sequence

from experiments.report.cells import (
    INTERVALS,
    NONE,
    Figure,
    PaperRow,
    Section,
    Table,
    comma_list,
    measure,
    measures,
    number,
    percent,
)
from experiments.report.figures import factors, sweep
from experiments.report.results import measured_only, not_run_notes, not_run_reason
from mats.evaluation.results import Json

_OTHERS = ("match@3", "match@5", "match@15", "mrr", "recall@15")
_FACTORS = ("candidate", "of those, ranked first", "Match@1", "misses at retrieval")
_MISSES = {
    "retrieval_miss": "no relevant candidate",
    "picked_another": "another first",
    "several_gold": "several relevant",
}


def main(results: Json, paper: Json) -> Section:
    sets = results["sets"]
    return Section(
        id="main",
        title="Main table",
        summary=f"Every system on every set, {number(results['k'])} candidates per query. {INTERVALS}",
        tables=(_match_at_1(sets, paper), *_papers_own(sets, paper), _others(sets, paper)),
    )


def _match_at_1(sets: Json, paper: Json) -> Table:
    systems = tuple(dict.fromkeys(system for one in sets.values() for system in one["systems"]))
    shown = _best_first(sets, [system for system in systems if _ran(sets, system)])
    rows: list[tuple[str, ...]] = []
    for name, one in sets.items():
        cells = (_match(one["systems"][system]) if system in one["systems"] else NONE for system in shown)
        rows.append((f"{name} ({one['documents']:,} / {one['queries']:,})", *cells))
        if name in paper["sets"]:
            rows.append(_paper_row(paper, name, shown))
    return Table(
        id="main-match-1",
        caption="Match@1 by set and system, % (capabilities / queries)",
        head=("set", *shown),
        rows=tuple(rows),
        notes=(*_differences(sets, paper), *_not_run(sets), *_missed_notes(sets)),
    )


def _ran(sets: Json, system: str) -> bool:
    return any(system in measured_only(one["systems"]) for one in sets.values())


def _best_first(sets: Json, systems: Sequence[str]) -> tuple[str, ...]:
    """The systems in their order, but the one with the highest mean over the sets first: it is never clipped."""

    def mean(system: str) -> float:
        known = [measured_only(one["systems"]).get(system) for one in sets.values()]
        shares: list[float] = [one["metrics"]["match@1"]["mean"] for one in known if one]
        return sum(shares) / len(shares)

    best = max(systems, key=mean, default="")
    return tuple(sorted(systems, key=lambda system: system != best))


def _paper_row(paper: Json, name: str, systems: Sequence[str]) -> PaperRow:
    row = paper["sets"][name]["row"]
    known = paper["main"]["rows"][row]
    cells = (percent(known["match@1"].get(paper["systems"].get(system, ""))) for system in systems)
    return PaperRow((f"paper: {row} ({known['registry']:,} / {known['queries']:,})", *cells))


def _papers_own(sets: Json, paper: Json) -> tuple[Table, ...]:
    """The paper's numbers for the systems that were not run here."""
    named = dict.fromkeys(system for one in sets.values() for system in one["systems"])
    missing = [system for system in named if not _ran(sets, system) and system in paper["systems"]]
    rows = tuple(_paper_row(paper, name, missing) for name in sets if name in paper["sets"])
    if not missing or not rows:
        return ()
    caption = "The paper's Match@1 of the systems that were not run here, %"
    return (Table(id="main-not-run", caption=caption, head=("set", *missing), rows=rows),)


def _match(result: Json) -> str:
    return measure(result if not_run_reason(result) else result["metrics"], "match@1")


def _others(sets: Json, paper: Json) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, one in sets.items():
        for system, result in measured_only(one["systems"]).items():
            rows.append((name, system, *measures(result["metrics"], _OTHERS)))
            if known := _of_paper(paper, name, system):
                rows.append(PaperRow((name, f"paper: {paper['systems'][system]}", *measures(known, _OTHERS))))
    return Table(
        id="main-others",
        caption="The other measures, %",
        head=("set", "system", *_OTHERS),
        rows=tuple(rows),
        labels=2,
        notes=(
            "The paper's columns for Match@15 and Recall@15 stand for different systems: retrievers alone have "
            "Match@15, whole pipelines Recall@15.",
        ),
    )


def _of_paper(paper: Json, name: str, system: str) -> dict[str, float]:
    known = paper["systems"].get(system, "")
    if name not in paper["sets"] or not known:
        return {}
    row = paper["sets"][name]["row"]
    tables = {**paper["ranking"]["rows"][row], **paper["at_15"]["rows"][row]}
    return {measure: systems[known] for measure, systems in tables.items() if known in systems}


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


def _missed_notes(sets: Json) -> Iterator[str]:
    """The definition of a miss: gold that is not registered, and failures."""
    gold = [f"{name} {one['unregistered_gold']:,}" for name, one in sets.items() if one.get("unregistered_gold")]
    if gold:
        yield f"Labels that are not in the registry and count as missed: {comma_list(gold)}."
    failures = [
        f"{system} on {name} {result['failed']:,}"
        for name, one in sets.items()
        for system, result in measured_only(one["systems"]).items()
        if result.get("failed")
    ]
    if failures:
        yield f"Queries that failed and count as missed: {comma_list(failures)}."


def scale(results: Json, paper: Json) -> Section:
    systems = measured_only(results["systems"])
    figure = Figure(
        id="scale",
        caption=f"Accuracy as the registry grows, {results['queries']:,} queries; bands are 95 % intervals.",
        alt=f"Match@1 against registry size for {comma_list(systems)}, and beside it the share of queries with a "
        "relevant candidate and the share of those where it is first.",
        draw=lambda: sweep(results),
    )
    return Section(
        id="scale",
        title="Accuracy against the size of the registry",
        summary=f"{results['queries']:,} queries of `{results['dataset']}`; their {results['gold']:,} relevant "
        f"capabilities are in every registry that can hold them; seeded distractors fill the rest. {INTERVALS}",
        tables=(_by_size(results, paper["scale"]),),
        figures=(figure,) if systems else (),
    )


def _by_size(results: Json, known: Json) -> Table:
    sizes, (first, last) = results["sizes"], known["sizes"]
    rows: list[tuple[str, ...]] = []
    for system, points in measured_only(results["systems"]).items():
        at = {point["size"]: point["match@1"] for point in points}
        rows.append((system, *(percent(at.get(size)) for size in sizes)))
    for system, (smallest, largest) in known["systems"].items():
        ends = {first: smallest, last: largest}
        rows.append(PaperRow((f"paper: {system}", *(percent(ends.get(size)) for size in [*sizes[:-1], last]))))
    return Table(
        id="scale-match-1",
        caption="Match@1 by size of the registry, %",
        head=("system", *map(number, sizes)),
        rows=tuple(rows),
        notes=(
            f"The paper ({known['table']}) names the ends of its sweep, {first:,} and "
            f"{last:,} tools of its own data; the latter stands under our largest size.",
            _crossover(results["crossover"], known["crossover"]),
            *not_run_notes(results["systems"].items()),
        ),
    )


def _crossover(found: Json, of_paper: int) -> str:
    if why := not_run_reason(found):
        return f"Crossover not measured: {why}"
    if found["size"] is None:
        return (
            f"{found['two_stage']} never stays ahead of {found['single']}; the paper's crossover is about {of_paper}."
        )
    return (
        f"{found['two_stage']} is ahead of {found['single']} from {found['size']:,} capabilities on; "
        f"the paper's crossover is about {of_paper}."
    )


def decomposition(results: Json, paper: Json) -> Section:
    sets = results["sets"]
    shares = ("candidates", "conditional", "match@1", "misses_at_retrieval")
    rows = tuple(
        (
            name,
            system,
            *(percent(result[share]) for share in shares),
            *(number(result["categories"].get(kind)) for kind in _MISSES),
        )
        for name, one in sets.items()
        for system, result in measured_only(one["systems"]).items()
    )
    known = paper["decomposition"]["misses_at_retrieval"].items()
    losses = comma_list(f"{100 * share:.0f} % on {row}" for row, share in known)
    low, high = paper["scale"]["conditional"]
    table = Table(
        id="decomposition-factors",
        caption="A relevant candidate × first if there is one = Match@1, %; and the causes of misses",
        head=("set", "system", *_FACTORS, *_MISSES.values()),
        rows=rows,
        labels=2,
        notes=(
            f"The paper loses {losses} of its misses at retrieval, and its reranker ranks a relevant candidate first "
            f"in {100 * low:.0f} to {100 * high:.0f} % of queries.",
            *_not_run(sets),
        ),
    )
    figure = Figure(
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
        figures=(figure,) if rows else (),
    )
