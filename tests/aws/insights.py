"""CloudWatch Logs Insights, as far as the queries of operators use it: fields, filter, stats, sort, limit, display."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Record = dict[str, Any]
_TEST = re.compile(r'ispresent\((?P<present>\S+)\)|(?P<field>\S+) (?:= "(?P<equal>[^"]*)"|in \[(?P<among>[^\]]*)\])')
_SUMS: Mapping[str, Callable[[list[Any]], Any]] = {"sum": sum, "latest": lambda values: values[-1], "count": len}


def flattened(value: object, name: str = "") -> Record:
    """The fields that Logs Insights extracts from a JSON object: `a.0.b`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        return {name: value}
    return {k: v for key, one in items for k, v in flattened(one, f"{name}.{key}" if name else str(key)).items()}


def run(lines: Sequence[str], log: Sequence[Mapping[str, Any]]) -> list[Record]:
    """The rows of a query over records of a log, in the order in which they were written."""
    rows = [{**dict(list(flattened(dict(each)).items())[:200]), "@timestamp": each["timestamp"]} for each in log]
    shown: list[str] = []
    for line in lines:
        command, _, rest = line.partition(" ")
        match command:
            case "filter":
                rows = [row for row in rows if all(_holds(test, row) for test in rest.split(" and "))]
            case "fields":
                named = [_alias(part) for part in rest.split(", ")]
                shown += [alias for _, alias in named]
                rows = [{**row, **{alias: row.get(field) for field, alias in named}} for row in rows]
            case "display":
                shown = rest.split(", ")
            case "stats":
                rows, shown = _stats(rest, rows)
            case "sort":
                field, _, order = rest.partition(" ")
                rows.sort(key=lambda row: row[field])
                rows = rows[::-1] if order == "desc" else rows  # of two in one millisecond, the later one first
            case "limit":
                rows = rows[: int(rest)]
            case _:
                raise ValueError(f"not played here: {line}")
    return [{name: row.get(name) for name in shown} for row in rows]


def _alias(text: str) -> tuple[str, str]:
    field, _, alias = text.partition(" as ")
    return field, alias or field


def _holds(test: str, row: Record) -> bool:
    found = _TEST.fullmatch(test.strip())
    assert found, f"not played here: {test}"
    if found["present"]:
        return row.get(found["present"]) is not None
    wanted = [found["equal"]] if found["equal"] is not None else re.findall(r'"([^"]*)"', found["among"])
    return row.get(found["field"]) in wanted


def _stats(text: str, rows: Sequence[Record]) -> tuple[list[Record], list[str]]:
    sums, _, keys = text.partition(" by ")
    by, named = keys.split(", "), [_alias(part) for part in sums.split(", ")]
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in by), []).append(row)
    made = []
    for key, group in groups.items():
        values = dict(zip(by, key, strict=True))
        for call, alias in named:
            function, field = call.rstrip(")").split("(")
            found = group if field == "*" else [row[field] for row in group if row.get(field) is not None]
            values[alias] = _SUMS[function](found)
        made.append(values)
    return made, [*by, *(alias for _, alias in named)]
