"""A preview report as JSON: printed by `mats preview --json`, answered by the service."""

from collections.abc import Mapping
from typing import Any

from mats.domain.ranking import Signal
from mats.local.preview.competitors import DUPLICATE_COSINE, DUPLICATE_OVERLAP, NearDuplicate
from mats.local.preview.report import PreviewReport, QueryPreview


def to_json(report: PreviewReport) -> dict[str, Any]:
    """A report as JSON."""
    profile = report.profile
    return {
        "id": profile.id,
        "kind": profile.kind,
        "placed": report.placed,
        "profile": {
            "described_by": report.described_by,
            **profile.enrichment.model_dump(mode="json"),
            "trust": profile.trust,
            "lifecycle": profile.lifecycle,
            "encoded_text": report.encoded,
        },
        "queries": [_query(one) for one in report.queries],
        "near_duplicates": [_duplicate(one) for one in report.duplicates],
        "thresholds": {"cosine": DUPLICATE_COSINE, "overlap": DUPLICATE_OVERLAP},
        "advice": [one._asdict() for one in report.advice],
        "without": report.without,
    }


def _query(one: QueryPreview) -> dict[str, Any]:
    outranked_by = [
        {"id": r.id, "place": r.place, "score": round(r.score, 4), "signals": _round_all(r.signals), "why": r.why}
        for r in one.competitors
    ]
    return {
        "query": one.query,
        "origin": one.origin,
        "place": one.place,
        "place_unaided": one.unaided,
        "looked_at": one.looked_at,
        "verdict": one.verdict,
        "score": None if one.score is None else round(one.score, 4),
        "signals": _round_all(one.signals),
        "matched": one.matched,
        "outranked_by": outranked_by,
    }


def _duplicate(one: NearDuplicate) -> dict[str, Any]:
    cosine = None if one.cosine is None else round(one.cosine, 4)
    compared = {"id": one.id, "cosine": cosine, "overlap": round(one.overlap, 4)}
    return {**compared, "same_namespace": one.same_owner, "description": one.description}


def _round_all(signals: Mapping[Signal, float]) -> dict[str, float]:
    return {signal: round(value, 4) for signal, value in signals.items()}
