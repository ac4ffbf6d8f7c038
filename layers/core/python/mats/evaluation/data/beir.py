"""Rows of BEIR's layout, which retrieval data sets share, as Registry items."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from mats.domain.text.words import word_set

_DESCRIPTOR = word_set(
    "title summary category domain functionality api_call performance provider_description instructions tags "
    "skills tools documentation"
)
"""Keys of a row that describe its capability, besides the attributes of a registration and `parameters`."""


def item_of(row: object) -> object:
    """The Registry item a row stands for; what is not recognised is returned as it is, to be parsed as one.

    A row with `_id`, `type` and `name` but no `kind` is of a retrieval data set (BEIR's layout). Its namespace is made
    from its source and `_id`, which is unique in its set, because names are not.

    Only known descriptions of a capability are read. All other entries are dropped: sets mark their rows for evaluation
    (`distractor`, `split`, `gold`), a list of such marks is never complete, and an index or a model that sees one sees
    the judgement. `examples` are dropped too, because in a judged set they may be its queries.
    """
    if not isinstance(row, Mapping) or "kind" in row or not {"_id", "type", "name"} <= row.keys():
        return row
    item: dict[str, Any] = {
        "namespace": namespace_of(row),
        "name": str(row["name"]),
        "kind": row["type"],
        "description": row.get("description"),
        "provider": row.get("provider"),
    }
    descriptor = {key: value for key, value in row.items() if key in _DESCRIPTOR and value}
    parameters = row.get("parameters")
    if isinstance(parameters, Mapping) and "properties" in parameters:
        item["input_schema"] = parameters
    elif parameters:
        descriptor["parameters"] = parameters
    return {key: value for key, value in {**item, "descriptor": descriptor}.items() if value}


def namespace_of(row: Mapping[str, Any]) -> str:
    """`source.id`, each in the letters that a namespace may have."""
    source = _label(str(row.get("source") or ""))[:90].strip("-")
    return f"{source}.{_of_id(str(row['_id']))}".lstrip(".")


def _of_id(text: str) -> str:
    """The label of an `_id`; of one without letters, or too long, as much as fits and what tells it from others."""
    label = _label(text)
    if 0 < len(label) <= 100:
        return label
    mark = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"{label[:80]}-{mark}".lstrip("-")


def _label(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
