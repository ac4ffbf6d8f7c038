"""Constants that map raw scores to [0, 1], by index and encoder."""

import json
import logging
from dataclasses import dataclass

from mats.bootstrap.models import packaged_text
from mats.domain.ranking.ranking import Scale, Thresholds
from mats.domain.shortlist.trace import CalibrationSource

LOGGER = logging.getLogger("mats")


@dataclass(frozen=True, slots=True)
class Calibration:
    """Scale and thresholds for one index and encoder, and whose they are."""

    scale: Scale
    thresholds: Thresholds
    source: CalibrationSource


RERANKED = Thresholds(match=0.7, weak=0.4)
"""For relevance by the scores of a reranker, which are absolute by themselves; not fitted to one model."""


def load_calibration(index: str, encoder: str) -> Calibration:
    """The constants for an index and an encoder, by the start of `index/encoder`.

    Fallback for a pair without calibration, with a warning: the same index with another encoder, else the first entry.
    `make calibrate` adds a pair.
    """
    table = json.loads(packaged_text("calibration.json"))
    wanted = f"{index}/{encoder}"
    known = next((key for key in table if wanted.startswith(key)), None)
    if known is None:
        known = next((key for key in table if key.startswith(f"{index}/")), next(iter(table)))
        LOGGER.warning("no calibration for %s; using that of %s", wanted, known)
    row = table[known]
    source = CalibrationSource(name=known, fitted=wanted.startswith(known))
    return Calibration(Scale(**row["scale"]), Thresholds(**row["thresholds"]), source)
