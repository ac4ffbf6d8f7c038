"""Constants of an encoder without labels: how it places a registry's own requests, beside a fitted encoder.

A request of a capability is one of its examples, or else the first sentence of its description; either is left out of
the text that is encoded for it. Its cosine with its own capability and with others say where the encoder's cosines
begin and end. Cosines are then mapped linearly, so that both means come to lie where the fitted encoder has them; its
other constants and thresholds stay.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.profile import Profile
from mats.domain.search.scale import Scale
from mats.domain.text.words import first_sentence
from mats.evaluation.measures import SEED
from mats.ports import Encoder

FEWEST, MOST = 200, 400  # Requests: those that are needed, and those of a larger registry that are used


@dataclass(frozen=True, slots=True)
class Cosines:
    """Mean cosines of requests with their own capabilities, and with others."""

    known: float
    noise: float
    requests: int


def own_requests(profiles: Iterable[Profile]) -> list[tuple[str, str]]:
    """Requests with the text of their capability without them, a seeded sample."""
    pairs = [pair for profile in profiles if (pair := _held_out(profile))]
    return random.Random(SEED).sample(pairs, min(MOST, len(pairs)))


def _held_out(profile: Profile) -> tuple[str, str] | None:
    written, source = profile.enrichment, profile.source
    if written.positive_examples:
        request, *others = written.positive_examples
        rest = profile.model_copy(
            update={"enrichment": written.model_copy(update={"positive_examples": tuple(others)})}
        )
        return request, embedded_text(rest)
    if source is None or not source.description:
        return None
    request = first_sentence(source.description)
    described = source.description.removeprefix(request).strip()
    rest = profile.model_copy(update={"source": source.model_copy(update={"description": described})})
    return request, embedded_text(rest)


def measure_cosines(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> Cosines:
    """Encode requests and texts; at least two pairs."""
    documents = encoder.encode_documents([text for _, text in pairs])
    rows = [row for row, vector in enumerate(documents) if vector is not None]
    asked = np.array([encoder.encode_query(pairs[row][0]) for row in rows])
    cosines = asked @ np.array([documents[row] for row in rows]).T
    own = np.eye(len(rows), dtype=bool)
    return Cosines(round(float(cosines[own].mean()), 4), round(float(cosines[~own].mean()), 4), len(rows))


def fit_cosines(scale: Scale, reference: Mapping[str, Sequence[float]], measured: Cosines) -> Scale:
    """The scale with the cosines worth nothing and everything for the encoder that was measured.

    `reference` has the lowest and the highest means of the fitted encoder over registries, as `known` and `noise`.
    Means between them, or half of their distance outside, are those of such an encoder: its constants stay. Raises
    ValueError: the encoder places requests no nearer to their own capabilities than to others.
    """
    if measured.known <= measured.noise:
        raise ValueError(f"requests are as near to others ({measured.noise}) as to their own ({measured.known})")
    means = {"known": measured.known, "noise": measured.noise}
    if all(abs(means[name] - (low + high) / 2) <= high - low for name, (low, high) in reference.items()):
        return scale
    known, noise = (sum(reference[name]) / 2 for name in ("known", "noise"))
    factor = (measured.known - measured.noise) / (known - noise)
    lo = measured.noise + (scale.lo - noise) * factor
    return replace(scale, lo=round(lo, 3), hi=round(lo + (scale.hi - scale.lo) * factor, 3))
