"""What a preview finds out, as JSON: printed by `mats preview --json`, answered by the service."""

from collections.abc import Mapping
from typing import Any

from mats.domain.ranking import Signal
from mats.usecases.preview import TWIN_COSINE, TWIN_OVERLAP, Outlook, Prospect, Twin


def told(outlook: Outlook) -> dict[str, Any]:
    """An outlook as JSON."""
    profile = outlook.profile
    return {
        "id": profile.id,
        "kind": profile.kind,
        "placed": outlook.placed,
        "profile": {
            "described_by": outlook.described_by,
            **profile.enrichment.model_dump(mode="json"),
            "trust": profile.trust,
            "lifecycle": profile.lifecycle,
            "encoded_text": outlook.encoded,
        },
        "queries": [_prospect(one) for one in outlook.prospects],
        "near_duplicates": [_twin(one) for one in outlook.twins],
        "thresholds": {"cosine": TWIN_COSINE, "overlap": TWIN_OVERLAP},
        "advice": [one._asdict() for one in outlook.advice],
        "without": outlook.without,
    }


def _prospect(one: Prospect) -> dict[str, Any]:
    rivals = [
        {"id": r.id, "place": r.place, "score": round(r.score, 4), "signals": _rounded(r.signals), "why": r.why}
        for r in one.rivals
    ]
    return {
        "query": one.query,
        "origin": one.origin,
        "place": one.place,
        "place_unaided": one.unaided,
        "looked_at": one.looked_at,
        "verdict": one.verdict,
        "score": None if one.score is None else round(one.score, 4),
        "signals": _rounded(one.signals),
        "matched": one.matched,
        "outranked_by": rivals,
    }


def _twin(one: Twin) -> dict[str, Any]:
    cosine = None if one.cosine is None else round(one.cosine, 4)
    shown = {"id": one.id, "cosine": cosine, "overlap": round(one.overlap, 4)}
    return {**shown, "same_namespace": one.same_owner, "description": one.description}


def _rounded(signals: Mapping[Signal, float]) -> dict[str, float]:
    return {signal: round(value, 4) for signal, value in signals.items()}
