"""The gain by a language model, as reranker and as writer. Its replies are real calls; grades measure, never reply."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from experiments.recordings import Recordings
from experiments.report.cells import INTERVALS, Section, Table, gained_lost, number, percent
from experiments.report.results import not_run_reason
from experiments.studies.context import Experiment, ExperimentContext, first_is_right
from experiments.studies.grades import SERVES, graded_json
from experiments.variants import SYSTEMS
from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import mcnemar
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers, ask
from mats.evaluation.systems.score import metrics_json

RERANKED = ("tools", "models", "skills", "agents", "mcp-tools-closed")
WRITTEN = ("tools", "sparse-tools", "mcp-tools-closed", "agents", "models")
WITHOUT, WITH = "hybrid", "pipeline-hybrid"
ARMS = ("bm25", WITHOUT, WITH)
GRADED = ("bm25", WITHOUT)  # Measured by grades, too


def run(context: ExperimentContext) -> dict[str, Any]:
    """The reranker on the queries whose own request has a recorded reply, then the writer on what it wrote."""
    if lacking := context.models.lacking({"llm", "encoder"}):
        return {"not_run": lacking}
    recordings = context.recordings or Recordings(context.data / "recorded")
    names = [name for name in RERANKED if name in context.sets]
    replies = {name: _replies(context, name, recordings.replied(name)) for name in names}
    replies = {name: one for name, one in replies.items() if one["commits"]}
    if not replies:
        return {"not_run": "no set has a query with a recorded reply"}
    return {
        "recorded": context.recordings is not None,
        "replies": replies,
        "matched": dict(recordings.counts),
        "graded": {name: _graded(context, name, recordings.grades(name)) for name in names},
        "writer": _writer(context),
    }


def _answers(context: ExperimentContext, name: str, arm: str, queries: Sequence[JudgedQuery]) -> Answers:
    context.log(f"{name}: {arm}, {len(queries)} queries")
    return ask(SYSTEMS[arm].build(context.bench(name)), queries)


def _replies(context: ExperimentContext, name: str, replied: Mapping[str, str]) -> dict[str, Any]:
    """For each query with a recorded reply its commit, and by arm whether the first result has the label."""
    queries = [query for query in context.dataset(name).queries if query.id in replied]
    dataset = replace(context.dataset(name), queries=queries)
    answers = {arm: _answers(context, name, arm, queries) for arm in ARMS} if queries else {}
    return {
        "commits": [replied[query.id] for query in queries],
        "first": {arm: list(map(int, first_is_right(each, dataset))) for arm, each in answers.items()},
        "failed": sum(bool(answer.failed) for answer in answers[WITH].values()) if queries else 0,
    }


def _graded(context: ExperimentContext, name: str, grades: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """The judged queries by label and by grade, without a language model."""
    queries = [query for query in context.dataset(name).queries if query.id in grades]
    dataset = replace(context.dataset(name), queries=queries)
    return {arm: graded_json(_answers(context, name, arm, queries), dataset, grades) for arm in GRADED}


def _writer(context: ExperimentContext) -> dict[str, Any]:
    """Queries of which a gold was written, and all others, over registries with and without the written fields."""
    sets = {}
    for name in (name for name in WRITTEN if name in context.sets):
        dataset, raw = context.dataset(name), context.answers(name, WITHOUT)
        with context.bench_of(dataset, writer=context.models.writer) as bench:
            context.log(f"{name}: enriched")
            enriched = SYSTEMS[WITHOUT].answers(bench)
            profiles = bench.discover.index.fetch([r.id for r in dataset.registrations])
        if isinstance(raw, str):
            continue
        written = {id for id, profile in profiles.items() if profile.enriched}
        sets[name] = _written_json(dataset, written, raw, enriched)
    return sets


def _written_json(dataset: Dataset, written: set[Id], raw: Answers, enriched: Answers) -> dict[str, Any]:
    parts = {
        "written": [query for query in dataset.queries if query.relevant & written],
        "others": [query for query in dataset.queries if not query.relevant & written],
    }
    result: dict[str, Any] = {"registrations": len(written)}
    for part, queries in parts.items():
        one = replace(dataset, queries=queries)
        if not queries:
            continue
        result[part] = {
            "queries": len(queries),
            "raw": _matches(raw, one),
            "enriched": _matches(enriched, one),
            "mcnemar": asdict(mcnemar(first_is_right(raw, one), first_is_right(enriched, one))),
            "wrong_places": [_wrong_places(answers, queries, written) for answers in (raw, enriched)],
        }
    return result


def _matches(answers: Answers, dataset: Dataset) -> dict[str, Any]:
    measures = metrics_json(answers, dataset)
    return {name: measures[name] for name in ("match@1", "match@15")}


def _wrong_places(answers: Answers, queries: Sequence[JudgedQuery], written: set[Id]) -> int:
    """Places among the first fifteen that written entries take from queries for which they are no gold."""
    return sum(id in written and id not in query.relevant for query in queries for id in answers[query.id].ranked[:15])


def section(results: Json, paper: Json) -> Section:
    if why := not_run_reason(results):
        summary = f"Not run (the language model): {why}"
        return Section(id="language-model", title="With a language model", summary=summary)
    source = "Replies of a strong model, recorded" if results["recorded"] else "The configured model"
    return Section(
        id="language-model",
        title="With a language model",
        summary=f"{source}: an upper bound for smaller ones. Graded first: the first result was graded {SERVES} or "
        f"more of 100 by the same strong model, whatever the label says. {INTERVALS}",
        tables=(_replies_table(results), _graded_table(results["graded"]), _writer_table(results["writer"])),
    )


def together(results: Json) -> dict[str, Any]:
    """Over all sets: the shares of recorded queries by arm with the paired test, and of graded ones."""
    first = {arm: _first(results, arm) for arm in ARMS}
    graded = {arm: [one[arm] for one in results["graded"].values() if one[arm]["queries"]] for arm in GRADED}
    sizes = [one["queries"] for one in graded[WITHOUT]]
    if not sizes:
        graded = {}
    return {
        "queries": len(first[WITHOUT]),
        "by_label": {arm: float(each.mean()) for arm, each in first.items()},
        "mcnemar": asdict(mcnemar(first[WITHOUT], first[WITH])),
        "graded": sum(sizes),
        "by_grade": {
            arm: float(np.average([one["grade_first"]["mean"] for one in each], weights=sizes))
            for arm, each in graded.items()
        },
    }


def _first(results: Json, arm: str, *, name: str = "", commit: str = "") -> Any:
    """For each reply, 1 if its query has its label first, else 0; of one set `name` or one `commit`, if given."""
    return np.array(
        [
            hit
            for set_, one in results["replies"].items()
            for hit, made in zip(one["first"][arm], one["commits"], strict=True)
            if name in ("", set_) and commit in ("", made)
        ],
        dtype=float,
    )


def _replies_table(results: Json) -> Table:
    commits = sorted({commit for one in results["replies"].values() for commit in one["commits"]})
    parts = [(name, "all", {"name": name}) for name in results["replies"]]
    parts += [("all", commit, {"commit": commit}) for commit in commits]
    rows = []
    for name, commit, chosen in (*parts, ("all", "all", {})):
        hits = [_first(results, arm, **chosen) for arm in ARMS]
        test = gained_lost(asdict(mcnemar(hits[1], hits[2])))
        rows.append((name, commit, number(len(hits[0])), *(percent(float(each.mean())) for each in hits), test))
    matched = results["matched"]
    scored, unmatched = matched.get("scored", 0), matched.get("unmatched", 0)
    share = f"{percent(scored / (scored + unmatched))} % of the candidates" if scored else "No candidate"
    return Table(
        id="language-model-replies",
        caption="Match@1 of queries with a recorded reply to their own request, %",
        head=("set", "request of commit", "queries", *ARMS, "gained / lost"),
        rows=tuple(rows),
        labels=2,
        notes=(f"{share} had a recorded score; one without counts as 0. Steps that a reply names are ignored.",),
    )


def _graded_table(sets: Json) -> Table:
    rows = []
    for name, one in sets.items():
        for arm, graded in one.items():
            if graded["queries"]:
                shares = (percent(graded[key]) for key in ("label_first", "grade_first", "ndcg@5", "unjudged"))
                rows.append((name, arm, number(graded["queries"]), *shares))
    return Table(
        id="language-model-graded",
        caption="First results by label and by grade, without a language model, %",
        head=("set", "system", "queries", "label first", "graded first", "nDCG@5", "not judged"),
        rows=tuple(rows),
        labels=2,
    )


def _writer_table(sets: Json) -> Table:
    parts = [(name, part, one[part]) for name, one in sets.items() for part in ("written", "others") if part in one]
    rows = []
    for name, part, one in parts:
        shares = (one[arm][at] for at in ("match@1", "match@15") for arm in ("raw", "enriched"))
        cells = (percent(share["mean"] if share else None) for share in shares)
        rows.append((name, part, number(one["queries"]), *cells, gained_lost(one["mcnemar"])))
    wrong = [sum(one["wrong_places"][arm] for *_, one in parts) for arm in (0, 1)]
    return Table(
        id="language-model-writer",
        caption="The first stage over raw and written registrations, %",
        head=("set", "gold", "queries", "@1 raw", "@1 written", "@15 raw", "@15 written", "gained / lost at 1"),
        rows=tuple(rows),
        labels=2,
        notes=(
            f"{sum(one['registrations'] for one in sets.values())} sparse registrations were written, the rest of each "
            f"registry is raw. Among the first fifteen of queries for which they are no gold they took {wrong[0]:,} "
            f"places, and {wrong[1]:,} afterwards.",
        ),
    )


def finding(results: Json) -> str:
    if not_run_reason(results):
        return ""
    total = together(results)
    label = {arm: 100 * value for arm, value in total["by_label"].items()}
    return (
        f"Language model: a strong one ({'recorded, ' if results['recorded'] else ''}{total['queries']} open queries) "
        f"raises with one rerank call first results with the label from {label[WITHOUT]:.1f} to {label[WITH]:.1f} % "
        f"({gained_lost(total['mcnemar'])})."
    )


EXPERIMENTS = (Experiment(name="language-model", place=5, run=run, section=section, finding=finding),)
