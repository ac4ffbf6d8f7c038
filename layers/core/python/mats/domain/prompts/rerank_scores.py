"""Finds the scores in a reranker's reply, in any form that says whose score is whose.

Under `s` or `scores`: a list by position, the same as text (`"95, 10"`), `{"1": 95, "2": 10}`, or
`[{"n": 1, "score": 95}, ...]`; the last two also without a key; all of them inside other objects, too, and with numeric
strings. No score is assigned by guessing: numbers of candidates must be all from 1 on, each once, and a list of numbers
under any other key may be a ranking.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_KEYS = ("s", "scores")
_TYPE = "t"
_NUMBER_KEYS, _SCORE_KEYS = ("n", "number", "candidate"), ("score", *_KEYS)
_NUMERIC = re.compile(r"\s*-?\d{1,18}(?:\.\d{1,18})?\s*")
_DEEPEST = 3
"""Levels of objects around the scores."""


@dataclass(frozen=True, slots=True)
class FoundScores:
    """The scores as the model wrote them, in order of the candidates, and the type it inferred."""

    numbers: Sequence[float]
    type: str = ""


def find_scores(value: object, *, depth: int = 0) -> FoundScores | None:
    """The scores in a JSON value; None if there are none or it is not certain which they are."""
    if isinstance(value, list):
        numbers = _by_entry(value)
        return FoundScores(numbers) if numbers else _inside(value, depth)
    if not isinstance(value, Mapping):
        return None
    type_ = value.get(_TYPE)
    key = next((key for key in _KEYS if key in value), None)
    numbers = _in_order(value[key]) if key else _by_number([pair for pair in value.items() if pair[0] != _TYPE])
    if numbers is not None:
        return FoundScores(numbers, type_ if isinstance(type_, str) else "")
    return None if key else _inside(list(value.values()), depth)


def _inside(values: Sequence[object], depth: int) -> FoundScores | None:
    """The scores in the only one of the values that is an object or a list."""
    inner = [value for value in values if isinstance(value, Mapping | list)]
    return find_scores(inner[0], depth=depth + 1) if len(inner) == 1 and depth < _DEEPEST else None


def _in_order(value: object) -> list[float] | None:
    """The numbers of a list, of a text that lists them, of an object or of entries with numbers."""
    if isinstance(value, str):
        value = _parse_list(value)
    if isinstance(value, Mapping):
        return _by_number(list(value.items()))
    if not isinstance(value, list):
        return None
    return _all_numbers(value) or _by_entry(value) if value else []


def _by_entry(entries: Sequence[object]) -> list[float] | None:
    """Scores of entries such as `{"n": 1, "score": 95}`, in the order of their numbers."""
    held = [entry for entry in entries if isinstance(entry, Mapping)]
    pairs = [(_one_of(entry, _NUMBER_KEYS), _one_of(entry, _SCORE_KEYS)) for entry in held]
    return _by_number(pairs) if len(held) == len(entries) else None


def _parse_list(text: str) -> object:
    """A list, or an object, that the model wrote as text: JSON, or numbers with commas between them."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text.split(",")
    return value if isinstance(value, list | Mapping) else [value]


def _by_number(pairs: Sequence[tuple[object, object]]) -> list[float] | None:
    """Scores in the order of the numbers beside them, which must be 1, 2, … in any order."""
    scores = {str(number): score for number, score in pairs if not isinstance(number, bool)}
    if not scores or len(scores) != len(pairs):
        return None
    if scores.keys() != {str(n) for n in range(1, len(scores) + 1)}:
        return None
    return _all_numbers([scores[str(n)] for n in range(1, len(scores) + 1)])


def _one_of(entry: Mapping[str, object], keys: Sequence[str]) -> object:
    """The value under the only one of the keys that an entry has; else None."""
    held = [key for key in keys if key in entry]
    return entry[held[0]] if len(held) == 1 else None


def _all_numbers(values: Sequence[object]) -> list[float] | None:
    """The values as numbers; None if one is not: a reply's scores stand for the first candidates, without gaps."""
    numbers = [_number(value) for value in values]
    found = [number for number in numbers if number is not None]
    return found if len(found) == len(numbers) else None


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return float(value) if _NUMERIC.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None
