"""Who gets seen: how often each provider's capabilities are among the answers, counted over the latest of them."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

_LINE = re.compile(r"(?P<at>\S+ \S+) INFO mats (?P<record>\{.*\})\s*")
_DECIDED = '"event": "discovered"'


class Seen(NamedTuple):
    """An answer: when it was given, the provider of each candidate, best first, and how many of them were shown."""

    at: str
    providers: tuple[str, ...]
    shown: int


def seen_in(line: str) -> Seen | None:
    """The answer that a line of the service's log records; None if it records none."""
    found = _LINE.fullmatch(line) if _DECIDED in line else None
    if found is None:
        return None
    try:
        record = json.loads(found["record"])
        at = datetime.fromisoformat(found["at"].replace(",", ".")).astimezone(UTC)
        providers = tuple(str(candidate["provider"] or "") for candidate in record["candidates"])
        return Seen(at.isoformat(timespec="seconds"), providers, min(max(int(record["shown"]), 0), len(providers)))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def exposure(answers: Sequence[Seen], registered: Mapping[str, int]) -> dict[str, Any]:
    """How often each provider was among the candidates, shown, and shown first: those shown most come first.

    Args:
        answers: In the order in which they were given.
        registered: How many capabilities each provider has.
    """
    candidates, shown, first, among = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for answer in answers:
        of_shown = answer.providers[: answer.shown]
        candidates.update(answer.providers)
        shown.update(of_shown)
        first.update(of_shown[:1])
        among.update(set(of_shown))
    in_all = shown.total()
    return {
        "answers": len(answers),
        "since": answers[0].at if answers else None,
        "until": answers[-1].at if answers else None,
        "providers": [
            {
                "provider": provider,
                "answers": among[provider],
                "first": first[provider],
                "shown": shown[provider],
                "candidates": candidates[provider],
                "share": round(shown[provider] / in_all, 4) if in_all else 0.0,
                "registered": registered.get(provider, 0),
            }
            for provider in sorted(candidates, key=lambda provider: (-shown[provider], provider))
        ],
    }
