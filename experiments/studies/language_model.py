"""The gain by a language model, as reranker and as writer, by labels and by graded judgements."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from experiments.recordings import Recordings
from experiments.report.cells import INTERVALS, NONE, Section, Table, gained_lost, number, percent
from experiments.report.results import not_run_reason
from experiments.studies.context import Experiment, ExperimentContext, first_is_right
from experiments.studies.grades import SERVES, by_grades, graded_json
from experiments.variants import SYSTEMS
from mats.bootstrap.models import prices
from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import mcnemar
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers, ask, run_of
from mats.evaluation.systems.score import metrics_json

RERANKED = ("tools", "models", "skills", "agents", "mcp-tools-closed")
WRITTEN = ("tools", "sparse-tools", "mcp-tools-closed", "agents", "models")
ARMS = ("bm25", "hybrid", "pipeline-bm25", "pipeline-dense", "pipeline-hybrid")
WITHOUT, WITH = "hybrid", "pipeline-hybrid"


def run(context: ExperimentContext) -> dict[str, Any]:
    """The reranker on judged queries and on those with a recorded reply, then the writer on registrations it wrote."""
    if lacking := context.models.lacking({"llm", "encoder"}):
        return {"not_run": lacking}
    recordings = context.recordings or Recordings(prices(), folder=context.data / "recorded")
    names = [name for name in RERANKED if name in context.sets]
    asked = {name: recordings.ids(name) for name in names}
    judged = {name: [q for q in context.dataset(name).queries if q.id in ids] for name, (_, ids) in asked.items()}
    return {
        "recorded": context.recordings is not None,
        "sets": {name: _by_both_yardsticks(context, name, queries, recordings) for name, queries in judged.items()},
        "replies": _replies(context, asked),
        "writer": _writer(context),
    }


def _answers(context: ExperimentContext, name: str, arm: str, queries: Sequence[JudgedQuery]) -> Answers:
    context.log(f"{name}: {arm}, {len(queries)} queries")
    return ask(SYSTEMS[arm].build(context.bench(name)), queries)


def _by_both_yardsticks(
    context: ExperimentContext, name: str, queries: Sequence[JudgedQuery], recordings: Recordings
) -> dict[str, Any]:
    dataset = replace(context.dataset(name), queries=queries)
    grades = {query.id: recordings.grades(query.text) for query in queries}
    answers = {arm: _answers(context, name, arm, queries) for arm in ARMS}
    served = {arm: by_grades(run_of(each), queries, grades).first_serves for arm, each in answers.items()}
    label = {arm: first_is_right(each, dataset) for arm, each in answers.items()}
    return {
        "arms": {arm: graded_json(each, dataset, grades) for arm, each in answers.items()},
        "by_label": {arm: list(map(int, each)) for arm, each in label.items()},
        "by_grade": {arm: list(map(int, each)) for arm, each in served.items()},
        "failed": {arm: sum(bool(answer.failed) for answer in each.values()) for arm, each in answers.items()},
    }


def _replies(context: ExperimentContext, asked: Mapping[str, tuple[Collection[str], object]]) -> dict[str, Any]:
    """The labels of queries with a recorded reply, over all sets together."""
    before, after = [], []
    for name, (ids, _) in asked.items():
        queries = [query for query in context.dataset(name).queries if query.id in ids]
        dataset = replace(context.dataset(name), queries=queries)
        before.append(first_is_right(_answers(context, name, WITHOUT, queries), dataset))
        after.append(first_is_right(_answers(context, name, WITH, queries), dataset))
    values = np.concatenate(before), np.concatenate(after)
    return {
        "queries": len(values[0]),
        "without": round(float(values[0].mean()), 4),
        "with": round(float(values[1].mean()), 4),
        "mcnemar": asdict(mcnemar(*values)),
    }


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
    total = together(results)
    source = "Replies and judgements of a strong model, recorded" if results["recorded"] else "The configured model"
    return Section(
        id="language-model",
        title="With a language model",
        summary=f"{source}: an upper bound for smaller ones. Graded first: the first result was graded {SERVES} or "
        f"more of 100, whatever the label says. {INTERVALS}",
        tables=(_yardsticks(results, total), _replies_table(results["replies"]), _writer_table(results["writer"])),
    )


def together(results: Json) -> dict[str, Any]:
    """The shares of all judged queries, and the paired tests of the reranker."""
    sets = results["sets"].values()
    values = {
        yardstick: {arm: np.array([v for one in sets for v in one[yardstick][arm]], dtype=float) for arm in ARMS}
        for yardstick in ("by_label", "by_grade")
    }
    return {
        "queries": len(values["by_label"][WITHOUT]),
        **{key: {arm: float(each.mean()) for arm, each in arms.items()} for key, arms in values.items()},
        "mcnemar": {key: asdict(mcnemar(arms[WITHOUT], arms[WITH])) for key, arms in values.items()},
    }


def _yardsticks(results: Json, total: Mapping[str, Any]) -> Table:
    sets, rows = results["sets"], []
    for name, one in sets.items():
        for arm, graded in one["arms"].items():
            label, *others = (percent(graded[key]) for key in ("label_first", "grade_first", "ndcg@5", "unjudged"))
            rows.append((name, arm, number(graded["queries"]), label, percent(_widened([one], arm)), *others))
    for arm in ARMS:
        shown = map(percent, (total["by_label"][arm], _widened(sets.values(), arm), total["by_grade"][arm]))
        rows.append(("all", arm, number(total["queries"]), *shown, NONE, NONE))
    by_label, by_grade = (gained_lost(total["mcnemar"][yardstick]) for yardstick in ("by_label", "by_grade"))
    return Table(
        id="language-model-graded",
        caption="First results by label and by grade, %",
        head=("set", "system", "queries", "label first", "widened first", "graded first", "nDCG@5", "not judged"),
        rows=tuple(rows),
        labels=2,
        notes=(
            f"{WITHOUT} against {WITH}, exact McNemar: by label {by_label}; by grade {by_grade}.",
            "The judge of the grades is the model whose scores `pipeline-…` replays, so their grades flatter it; the "
            "labels do not. A candidate that nobody judged counts as 0. Widened labels have what is graded so, too.",
        ),
    )


def _widened(sets: Iterable[Json], arm: str) -> float:
    """The share of first results that have the label, or a grade that serves."""
    hits = [hit for one in sets for hit in map(max, one["by_label"][arm], one["by_grade"][arm])]
    return float(np.mean(hits))


def _replies_table(replies: Json) -> Table:
    shares = (percent(replies[name]) for name in ("without", "with"))
    return Table(
        id="language-model-replies",
        caption="Match@1 of queries with a recorded reply to their own request, %",
        head=("queries", "without", "with", "gained / lost"),
        rows=((number(replies["queries"]), *shares, gained_lost(replies["mcnemar"])),),
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
    label, grade = ({arm: 100 * value for arm, value in total[key].items()} for key in ("by_label", "by_grade"))
    return (
        f"Language model: a strong one ({'recorded, ' if results['recorded'] else ''}{total['queries']} open queries) "
        f"raises with one rerank call first results with the label from {label[WITHOUT]:.1f} to {label[WITH]:.1f} %, "
        f"and first results that serve the request, equivalents included, from {grade[WITHOUT]:.1f} to "
        f"{grade[WITH]:.1f} %."
    )


EXPERIMENTS = (Experiment(name="language-model", place=5, run=run, section=section, finding=finding),)
