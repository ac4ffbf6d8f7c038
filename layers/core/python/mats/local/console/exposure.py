"""The exposure report as JSON."""

from collections.abc import Mapping
from typing import Any

from mats.ports import Exposure


def exposure_json(exposure: Exposure, registered: Mapping[str, int]) -> dict[str, Any]:
    """Counts per provider with its share of all shown results; `registered` has its number of capabilities."""
    shown = sum(provider.shown for provider in exposure.providers)
    return {
        "answers": exposure.answers,
        "since": exposure.since,
        "until": exposure.until,
        "providers": [
            {
                "provider": one.provider,
                "answers": one.answers,
                "first": one.first,
                "shown": one.shown,
                "candidates": one.candidates,
                "share": round(one.shown / shown, 4) if shown else 0.0,
                "registered": registered.get(one.provider, 0),
            }
            for one in exposure.providers
        ],
    }
