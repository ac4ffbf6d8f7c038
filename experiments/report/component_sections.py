"""Sections about parts of the pipeline: enrichment, signals, the first stage."""

from collections.abc import Iterator, Sequence

from experiments.report.cells import (
    INTERVALS,
    NONE,
    Figure,
    PaperRow,
    Section,
    Table,
    comma_list,
    gained_lost,
    measure,
    measures,
    number,
    percent,
)
from experiments.report.figures import by_source, sparsity
from experiments.report.results import measured_only, not_run_notes
from mats.evaluation.results import Json

_MEASURES = ("match@1", "match@15", "recall@15")
_MATCH = ("match@1", "match@15")
_MCNEMAR = "Gained and lost are queries whose first result became right or wrong; p is exact McNemar, two-sided."


def enrichment(results: Json, paper: Json) -> Section:
    levels, known = results["levels"], paper["sparsity"]
    tables = [_levels(levels, known)]
    if fields := results.get("fields"):
        tables.append(_without(fields, "enrichment-fields", "Without each part of the registration, %"))
    if fields := results.get("written_fields"):
        tables.append(_without(fields, "enrichment-written", "Without each field that enrichment writes, %"))
    figure = Figure(
        id="sparsity",
        caption="Raw and enriched with ever less of the owner's text, with 95 % intervals; diamonds are the paper's.",
        alt="Match@1 and Recall@15, raw and enriched, with full descriptions, first sentences and names only.",
        draw=lambda: sparsity(levels, known["levels"]),
    )
    return Section(
        id="enrichment",
        title="Enrichment and sparse registrations",
        summary=f"A seeded pool of {results['pool']:,} capabilities of `{results['dataset']}` with the "
        f"{results['queries']:,} queries for them. Hint is the first sentence, at most 150 characters. {INTERVALS}",
        tables=tuple(tables),
        figures=(figure,) if any(measured_only(level) for level in levels.values()) else (),
    )


def _levels(levels: Json, known: Json) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, level in levels.items():
        for arm in ("raw", "enriched"):
            test = gained_lost(level["mcnemar"]) if arm == "enriched" else NONE
            rows.append((name, arm, *measures(level[arm], _MEASURES), test))
            of_paper = known["levels"].get(name, {}).get(arm, {})
            rows.append(PaperRow((name, f"paper: {arm}", *measures(of_paper, _MEASURES), NONE)))
    return Table(
        id="enrichment-levels",
        caption="Raw and enriched by the owner's text, %",
        head=("text", "profiles", *_MEASURES, "gained / lost"),
        rows=tuple(rows),
        labels=2,
        notes=(
            f"The paper ({known['table']}) draws its own pool of {known['pool']:,} from ToolRet "
            f"({known['queries']:,} queries) and ranks with BM25 and a reranker; ours is another pool of other data, "
            "ranked by the first stage as shipped.",
            _MCNEMAR,
            *not_run_notes((name, level["enriched"]) for name, level in levels.items()),
        ),
    )


def _without(fields: Json, id: str, caption: str) -> Table:
    return Table(
        id=id,
        caption=caption,
        head=("without", *_MEASURES, "gained / lost"),
        rows=tuple(
            (name, *measures(one.get("metrics", one), _MEASURES), gained_lost(one.get("mcnemar")))
            for name, one in fields.items()
        ),
        notes=(_MCNEMAR, *not_run_notes(fields.items())),
    )


def signals(results: Json, paper: Json) -> Section:
    without, known = results["sample"]["without"], paper["signals"]
    gain = known["four_minus_two"]["match@1"]
    sample = Table(
        id="signals-without",
        caption="Each signal left out, over the sample registry, %",
        head=("without", *_MEASURES),
        rows=tuple((name, *measures(metrics, _MEASURES)) for name, metrics in without.items()),
        notes=(
            f"The paper ({known['table']}) gains {100 * gain:+.1f} pp Match@1 by Quality and Intent over "
            f"{known['queries']} queries of a registry that is not public: {gained_lost(known)}.",
            *not_run_notes(without.items()),
        ),
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


def _rules(sets: Json) -> Iterator[tuple[str, ...]]:
    for name, one in sets.items():
        for rule, metrics in one["rules"].items():
            test = gained_lost(one.get("mcnemar")) if rule == "stand-in" else NONE
            yield name, rule, *measures(metrics, _MEASURES), test


def blends(results: Json, paper: Json) -> Section:
    macro, sets, names = results["macro"], results["sets"], tuple(results["weights"])
    asked = comma_list(f"{name} {one['asked']:,}" for name, one in sets.items())
    return Section(
        id="blends",
        title="Weights beside a reranker of known error",
        summary="No model was called: scores are derived from the labels plus noise. Gold gets "
        f"{_range(results['gold'])}; others get {_range(results['others'])} by their retrieval score, with a standard "
        f"deviation of {results['opinion_sd']:.0f}, and less than the gold; in {percent(results['twins'])} % of "
        f"queries the candidate most like gold and request gets {_range(results['twin_lead'])} more. Noise is normal, "
        "sd is its standard deviation; scores are rounded to 5.",
        tables=(
            Table(
                id="blends-macro",
                caption="Match@1 by reranker and by the signal beside its weight of .50, mean over the sets, %",
                head=("reranker", *names),
                rows=tuple((reranker, *(percent(row[name]) for name in names)) for reranker, row in macro.items()),
                notes=(
                    f"Queries: {asked}; {results['seeds']} draws of each.",
                    f"Length-biased: sd 10, and {results['bias']:.0f} points per standard deviation of the length of a "
                    "card. Constant: 50 for every candidate. `llm alone` breaks ties by id.",
                    "The paper reports no such experiment.",
                ),
            ),
            Table(
                id="blends-sets",
                caption="Match@1 by set, reranker and blend, %",
                head=("set", "reranker", *names),
                rows=tuple(
                    (set_name, reranker, *(percent(row[name]["mean"]) for name in names))
                    for set_name, one in sets.items()
                    for reranker, row in one["judges"].items()
                ),
                labels=2,
            ),
        ),
    )


def _range(ends: Sequence[float]) -> str:
    return f"{ends[0]:.0f} to {ends[1]:.0f}"


def first_stage(results: Json, paper: Json) -> Section:
    sets = measured_only(results["sets"])
    return Section(
        id="first-stage",
        title="The first stage",
        summary=f"Retrieval without a reranker. {INTERVALS}",
        tables=(_settings("first-stage-settings", results), _candidates(sets), _sources(sets, paper["sources"])),
        figures=_source_figure(sets),
    )


def field_weights(results: Json, paper: Json) -> Section:
    return Section(
        id="field-weights",
        title="Weights of the lexical fields",
        summary=f"The first stage with other weights of one field. {INTERVALS}",
        tables=(_settings("field-weights-settings", results),),
    )


def _settings(id: str, results: Json) -> Table:
    return Table(
        id=id,
        caption="One setting changed at a time, %",
        head=("set", "setting", *_MATCH),
        rows=tuple(
            (name, label, *measures(metrics, _MATCH))
            for name, one in measured_only(results["sets"]).items()
            for label, metrics in one["settings"].items()
        ),
        labels=2,
        notes=tuple(not_run_notes(results["sets"].items())),
    )


def _candidates(sets: Json) -> Table:
    ks = tuple(dict.fromkeys(k for one in sets.values() for k in one["k"]))
    return Table(
        id="first-stage-k",
        caption="Match and recall of k candidates, %",
        head=("set", "measure", *(f"k = {k}" for k in ks)),
        rows=tuple(
            (name, label, *(percent(one["k"].get(k, {}).get(key)) for k in ks))
            for name, one in sets.items()
            for key, label in (("match", "any relevant one"), ("recall", "share of relevant ones"))
        ),
        labels=2,
    )


def _sources(sets: Json, known: Json) -> Table:
    of_paper, systems = known["rows"]["Tools / ToolRet"], ("bm25", "hybrid")
    rows: list[tuple[str, ...]] = []
    for name, part in sets.items():
        shared = of_paper if name in ("tools", "toolret") else {}  # no other set of the paper shares sources with ours
        for source, one in part["sources"].items():
            cells = (measure(one[system], match) for match in _MATCH for system in systems)
            rows.append(
                (name, source, number(one["queries"]), *cells, percent(shared.get(source, {}).get("ours+titan")))
            )
    return Table(
        id="first-stage-sources",
        caption="Source by source, %",
        head=("set", "source", "queries", "bm25 @1", "hybrid @1", "bm25 @15", "hybrid @15", "paper: ours+titan @1"),
        rows=tuple(rows),
        labels=2,
        notes=(
            f"The paper's column ({known['table']}) is its whole pipeline over all of ToolRet, for the "
            "sources that we have: other queries and another registry.",
            *not_run_notes(
                (system, one.get(system))
                for part in sets.values()
                for one in part["sources"].values()
                for system in systems
            ),
        ),
    )


def _source_figure(sets: Json) -> tuple[Figure, ...]:
    """The figure of the set with the most measured sources, if it has at least two."""
    comparable = {
        name: {source: one for source, one in part["sources"].items() if measured_only(one) == one}
        for name, part in sets.items()
    }
    name = max(comparable, key=lambda each: len(comparable[each]), default="")
    if not name or len(comparable[name]) < 2:
        return ()
    figure = Figure(
        id="sources",
        caption=f"Plain BM25 and the first stage as shipped, source by source of `{name}`, with 95 % intervals; "
        "n is the number of queries.",
        alt=f"Bars of Match@1 and Match@15 for {comma_list(comparable[name])}, by Match@15 of the first stage.",
        draw=lambda: by_source(comparable[name]),
    )
    return (figure,)
