"""The sample registry as it is served: its registrations, the operators' trust, its judged queries."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaluation.workbench import registry_of
from mats.bootstrap.local import Local
from mats.domain.capability import Id
from mats.domain.profile import Cause
from mats.domain.registration import Registration
from mats.ports import Change, Encoder
from mats.settings import Settings

EXAMPLES = Path(__file__).parents[1] / "examples"


@contextmanager
def sample_registry(settings: Settings, *, encoder: Encoder | None) -> Iterator[Local]:
    """The sample registry in a folder that is gone afterwards."""
    registrations = [Registration.parse(item) for item in lines("registry.jsonl")]
    with registry_of(registrations, settings, encoder=encoder) as local:
        trusted = {Id(row["id"]): int(row["trust"]) for row in lines("trust.jsonl")}
        for id, trust in trusted.items():
            local.trust.put(id, trust)
        cause = Cause(event_id="sample", time=local.clock.now())
        local.enrich([Change(id, cause) for id in trusted])
        yield local


def lines(name: str) -> list[Any]:
    """The rows of one of the example files."""
    return [json.loads(line) for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines() if line]
