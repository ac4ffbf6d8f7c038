"""The sample registry as a data set: registrations, trust, and golden queries."""

import hashlib
import json
from typing import Any

from mats.domain.capability import Id
from mats.domain.registration import Registration
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.resources import resource

EXAMPLES = resource("examples")


def sample() -> Dataset:
    """The sample; some of its queries have no relevant capability."""
    texts = {name: (EXAMPLES / name).read_text(encoding="utf-8") for name in _FILES}
    registry, trust, queries = (_rows(texts[name]) for name in _FILES)
    return Dataset(
        name=EXAMPLES.name,
        registrations=[Registration.parse(item) for item in registry],
        queries=[JudgedQuery(row["id"], row["text"], frozenset(map(Id, row["relevant"]))) for row in queries],
        refused={},
        digest=hashlib.sha256("".join(texts.values()).encode()).hexdigest(),
        trust={Id(row["id"]): int(row["trust"]) for row in trust},
    )


_FILES = ("registry.jsonl", "trust.jsonl", "queries.jsonl")


def _rows(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines() if line]
