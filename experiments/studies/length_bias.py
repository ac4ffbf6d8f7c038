"""What written entries gain, and what they take from raw ones, by the share of a registry that is written."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from experiments.report.cells import Section, Table, number
from experiments.report.results import measured_only, not_run_notes
from experiments.studies.context import Experiment, ExperimentContext
from experiments.studies.language_model import WITHOUT, WRITTEN, written_json
from experiments.variants import SYSTEMS
from mats.domain.capability.registration import Registration
from mats.domain.errors import ReplyUnusable
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import SEED
from mats.evaluation.results import Json
from mats.ports import Writer

SHARES = (0.1, 0.25, 0.5)
_PARTS = {"written": "of a written one", "others": "of raw ones"}


def run(context: ExperimentContext) -> dict[str, Any]:
    """By share and set: the recorded registrations among a seeded sample of the others, all raw, then they written."""
    if context.models.recordings is None:
        return {"not_run": "has no recording: unset MATS_LLM_URL, so that DATA/recorded is used"}
    shares: dict[str, Any] = {str(share): {} for share in SHARES}
    for whole in (context.dataset(name) for name in WRITTEN if name in context.sets):
        written = [one for one in whole.registrations if _is_written(context.models.writer, one)]
        for share in SHARES:
            part = registry_with(whole, written, share)
            context.log(f"{whole.name}: {len(written)} of {len(part.registrations):,} written")
            with context.bench_of(part) as raw, context.bench_of(part, writer=context.models.writer) as enriched:
                both = (SYSTEMS[WITHOUT].answers(bench) for bench in (raw, enriched))
                shares[str(share)][whole.name] = written_json(part, {one.id for one in written}, *both)
    return {"shares": shares}


def _is_written(writer: Writer, registration: Registration) -> bool:
    try:
        writer.describe(registration)
    except ReplyUnusable:
        return False
    return True


def registry_with(whole: Dataset, written: list[Registration], share: float) -> Dataset:
    """The written registrations and so many others that they are a share; with the queries that one of them answers."""
    ids = {one.id for one in written}
    others = [one for one in whole.registrations if one.id not in ids]
    sample = random.Random(SEED).sample(others, min(len(others), round(len(written) * (1 - share) / share)))
    registered = ids | {one.id for one in sample}
    queries = [replace(query, relevant=query.relevant & registered) for query in whole.queries]
    return replace(whole, registrations=[*written, *sample], queries=[query for query in queries if query.relevant])


def section(results: Json, paper: Json) -> Section:
    shares = measured_only({"all": results}).get("all", {}).get("shares", {})
    table = Table(
        id="length-bias-shares",
        caption="The first stage over all sets, by the share of each registry that is written",
        head=("written, %", "right answer", "queries", "@1, % raw", "written", "@15, % raw", "written", "wrong places"),
        rows=tuple(
            (f"{100 * float(share):.0f}", text, *_cells([one[part] for one in sets.values() if part in one]))
            for share, sets in shares.items()
            for part, text in _PARTS.items()
        ),
        labels=2,
        notes=(
            "Wrong places: those among the first fifteen that written entries take from other right answers, raw and "
            "written.",
            *not_run_notes([("this table", results)]),
        ),
    )
    return Section(
        id="length-bias",
        title="Written entries among raw ones",
        summary="Replies of a strong model to sparse registrations, recorded, among a seeded sample of raw ones; no "
        "reranker. In per cent of the queries of all sets.",
        tables=(table,),
    )


def _cells(parts: list[Mapping[str, Any]]) -> tuple[str, ...]:
    queries = sum(one["queries"] for one in parts)
    matches = (
        f"{100 * sum(one[arm][at]['mean'] * one['queries'] for one in parts) / queries:.1f}"
        for at in ("match@1", "match@15")
        for arm in ("raw", "enriched")
    )
    before, after = (sum(one["wrong_places"][arm] for one in parts) for arm in (0, 1))
    return number(queries), *matches, f"{before:,} → {after:,} ({after / max(1, before):.2f} ×)"


EXPERIMENTS = (Experiment(name="length-bias", place=90, run=run, section=section),)
