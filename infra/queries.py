"""The queries of operators over the logs of functions, saved in Logs Insights: docs/what-functions-log.md."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class SavedQuery(NamedTuple):
    """A query over the log of one function."""

    function: str
    lines: tuple[str, ...]


def saved_queries(*, hashed: bool = False) -> Mapping[str, SavedQuery]:
    """By name; `hashed`: the log has hashes in place of what callers asked."""
    text = Path(__file__).with_name("queries.json").read_text("utf-8")
    every = json.loads(text.replace("{request}", "query_hash" if hashed else "query"))
    return {name: SavedQuery(each["function"], tuple(each["lines"])) for name, each in every.items()}
