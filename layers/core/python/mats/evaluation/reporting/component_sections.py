"""Sections about parts of the pipeline: enrichment, signals, the first stage."""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.evaluation.reporting.cells import (
    NONE,
    Figure,
    Section,
    Table,
    comma_list,
    gained_lost,
    measure,
    number,
    percent,
)
from mats.evaluation.reporting.figures import by_source, sparsity
from mats.evaluation.reporting.results import Json, measured_only, not_run_notes, not_run_reason
from mats.evaluation.reporting.system_sections import INTERVALS

_MEASURES = ("match@1", "match@15", "recall@15")
_MCNEMAR = "Gained and lost are queries whose first result became right or wrong; p is exact McNemar, two-sided."


def enrichment(results: Json, paper: Json) -> Section:
    """Raw against enriched profiles with ever less of the owner's text, and without each field."""
    levels = results["levels"]
    tables = [_levels(levels, paper)]
    for key, id, caption in (
        ("fields", "enrichment-fields", "Without each part of the registration, %"),
        ("written_fields", "enrichment-written", "Without each field that enrichment writes, %"),
    ):
        if results.get(key):
            tables.append(_without(results[key], id, caption))
    drawn = Figure(
        id="sparsity",
        caption="Raw and enriched with ever less of the owner's text, with 95 % intervals; diamonds are the paper's.",
        alt="Match@1 and Recall@15, raw and enriched, with full descriptions, first sentences and names only.",
        draw=lambda: sparsity(levels, paper["sparsity"]["levels"]),
    )
    return Section(
        id="enrichment",
        title="Enrichment and sparse registrations",
        summary=f"A seeded pool of {results['pool']:,} capabilities of `{results['dataset']}` with the "
        f"{results['queries']:,} queries for them. Hint is the first sentence, at most 150 characters. {INTERVALS}",
        tables=tuple(tables),
        figures=(drawn,) if any(measured_only(level) for level in levels.values()) else (),
    )


def _levels(levels: Json, paper: Json) -> Table:
    known = paper["sparsity"]
    rows: list[tuple[str, ...]] = []
    theirs = set()
    for name, level in levels.items():
        for arm in ("raw", "enriched"):
            test = gained_lost(level["mcnemar"]) if arm == "enriched" else NONE
            rows.append((name, arm, *(measure(level[arm], m) for m in _MEASURES), test))
            of_paper = known["levels"].get(name, {}).get(arm, {})
            theirs.add(len(rows))
            rows.append((name, f"paper: {arm}", *(percent(of_paper.get(m)) for m in _MEASURES), NONE))
    return Table(
        id="enrichment-levels",
        caption="Raw and enriched by the owner's text, %",
        head=("text", "profiles", *_MEASURES, "gained / lost"),
        rows=tuple(rows),
        labels=2,
        paper_rows=frozenset(theirs),
        notes=(
            f"The paper ({known['table']}) draws its own pool of {known['pool']:,} from ToolRet "
            f"({known['queries']:,} queries) and ranks with BM25 and a reranker; ours is another pool of other data, "
            "ranked by the first stage as shipped.",
            _MCNEMAR,
            *not_run_notes((name, level["enriched"]) for name, level in levels.items()),
        ),
    )


def _without(fields: Json, id: str, caption: str) -> Table:
    rows = tuple(
        (name, *(measure(one.get("metrics", one), m) for m in _MEASURES), gained_lost(one.get("mcnemar")))
        for name, one in fields.items()
    )
    return Table(
        id=id,
        caption=caption,
        head=("without", *_MEASURES, "gained / lost"),
        rows=rows,
        notes=(_MCNEMAR, *not_run_notes(fields.items())),
    )


def signals(results: Json, paper: Json) -> Section:
    """Each signal left out, and the fallback without a reranker."""
    without = results["sample"]["without"]
    sample = Table(
        id="signals-without",
        caption="Each signal left out, over the sample registry, %",
        head=("without", *_MEASURES),
        rows=tuple((name, *(measure(metrics, m) for m in _MEASURES)) for name, metrics in without.items()),
        notes=(*_four_signals(paper["signals"]), *not_run_notes(without.items())),
    )
    rules = Table(
        id="signals-rules",
        caption="Without a reranker: the fallback (stand-in) against the paper's plain rule, %",
        head=("set", "rule", *_MEASURES, "gained / lost"),
        rows=tuple(_rules(results["sets"])),
        labels=2,
        notes=(
            "By the paper's rule a missing signal drops out, the reranker's too. Gained and lost: by the fallback.",
            *not_run_notes((name, rule) for name, one in results["sets"].items() for rule in one["rules"].values()),
        ),
    )
    return Section(
        id="signals",
        title="Signals",
        summary=f"{number(results['sample']['queries'])} queries over the sample registry, which has trust and type "
        f"tags; no public set has. {INTERVALS}",
        tables=(sample, rules),
    )


def _four_signals(known: Json) -> Iterator[str]:
    gain = known["four_minus_two"]["match@1"]
    yield (
        f"The paper ({known['table']}) gains {100 * gain:+.1f} pp Match@1 by Quality and Intent over "
        f"{known['queries']} queries of a registry that is not public: {gained_lost(known)}."
    )


def _rules(sets: Json) -> Iterator[tuple[str, ...]]:
    for name, one in sets.items():
        for rule, metrics in one["rules"].items():
            test = gained_lost(one.get("mcnemar")) if rule == "stand-in" else NONE
            yield name, rule, *(measure(metrics, m) for m in _MEASURES), test


def first_stage(results: Json, paper: Json) -> Section:
    """Settings one at a time, the number of candidates, and the sources."""
    sets = {name: one for name, one in results["sets"].items() if not not_run_reason(one)}
    lacking = tuple(not_run_notes(results["sets"].items()))
    tables = (_settings(sets, lacking), _candidates(sets), _sources(sets, paper))
    return Section(
        id="first-stage",
        title="The first stage",
        summary=f"Retrieval without a reranker. {INTERVALS}",
        tables=tables,
        figures=_source_figure(sets),
    )


def field_weights(results: Json, paper: Json) -> Section:
    """Weights of the lexical fields."""
    sets = {name: one for name, one in results["sets"].items() if not not_run_reason(one)}
    table = _settings(sets, tuple(not_run_notes(results["sets"].items())), id="field-weights-settings")
    return Section(
        id="field-weights",
        title="Weights of the lexical fields",
        summary=f"The first stage with other weights of one field. {INTERVALS}",
        tables=(table,),
    )


def _settings(sets: Json, lacking: tuple[str, ...], *, id: str = "first-stage-settings") -> Table:
    rows = tuple(
        (name, label, *(measure(metrics, m) for m in _MEASURES[:2]))
        for name, one in sets.items()
        for label, metrics in one["settings"].items()
    )
    return Table(
        id=id,
        caption="One setting changed at a time, %",
        head=("set", "setting", *_MEASURES[:2]),
        rows=rows,
        labels=2,
        notes=lacking,
    )


def _candidates(sets: Json) -> Table:
    ks = tuple(dict.fromkeys(k for one in sets.values() for k in one["k"]))
    rows = tuple(
        (name, label, *(percent(one["k"].get(k, {}).get(key)) for k in ks))
        for name, one in sets.items()
        for key, label in (("match", "any relevant one"), ("recall", "share of relevant ones"))
    )
    return Table(
        id="first-stage-k",
        caption="Match and recall of k candidates, %",
        head=("set", "measure", *(f"k = {k}" for k in ks)),
        rows=rows,
        labels=2,
    )


def _sources(sets: Json, paper: Json) -> Table:
    known = paper["sources"]
    theirs = known["rows"]["Tools / ToolRet"]
    rows = tuple(
        (
            name,
            source,
            number(one["queries"]),
            *_both(one, "match@1"),
            *_both(one, "match@15"),
            _source(name, source, theirs),
        )
        for name, part in sets.items()
        for source, one in part["sources"].items()
    )
    return Table(
        id="first-stage-sources",
        caption="Source by source, %",
        head=("set", "source", "queries", "bm25 @1", "hybrid @1", "bm25 @15", "hybrid @15", "paper: ours+titan @1"),
        rows=rows,
        labels=2,
        notes=(
            f"The paper's column ({known['table']}) is its whole pipeline over all of ToolRet, for the "
            "sources that we have: other queries and another registry.",
            *not_run_notes(
                (system, one.get(system))
                for part in sets.values()
                for one in part["sources"].values()
                for system in ("bm25", "hybrid")
            ),
        ),
    )


def _both(one: Json, name: str) -> Iterator[str]:
    return (measure(one[system], name) for system in ("bm25", "hybrid"))


def _source(name: str, source: str, theirs: Mapping[str, Any]) -> str:
    """The paper's number for a source; only its set of tools shares sources with ours."""
    if name not in ("tools", "toolret") or source not in theirs:
        return NONE
    return percent(theirs[source]["ours+titan"])


def _source_figure(sets: Json) -> tuple[Figure, ...]:
    """The figure of the set with the most measured sources, if it has at least two."""
    comparable = {
        name: {
            source: s
            for source, s in one["sources"].items()
            if not (not_run_reason(s["bm25"]) or not_run_reason(s["hybrid"]))
        }
        for name, one in sets.items()
    }
    name = max(comparable, key=lambda each: len(comparable[each]), default="")
    if not name or len(comparable[name]) < 2:
        return ()
    return (
        Figure(
            id="sources",
            caption=f"Plain BM25 and the first stage as shipped, source by source of `{name}`, with 95 % intervals; "
            "n is the number of queries.",
            alt=f"Bars of Match@1 and Match@15 for {comma_list(comparable[name])}, by Match@15 of the first stage.",
            draw=lambda: by_source(comparable[name]),
        ),
    )
