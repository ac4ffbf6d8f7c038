"""Parses a reranker's reply. Total: any string gives a result or the reason why there is none.

Scores are read in any form that says whose score is whose. Under `s` or `scores`: a list by position, the same as text
(`"95, 10"`), `{"1": 95, "2": 10}`, or `[{"n": 1, "score": 95}, ...]`; the last two also without a key; all of them
inside other objects, too, and with numeric strings. No score is assigned by guessing: numbers of candidates must be all
from 1 on, each once, and a list of numbers under any other key may be a ranking.
"""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mats.domain.capability.capability import Kind
from mats.domain.profile.profile import Profile
from mats.domain.prompts.usage import Usage
from mats.domain.text.words import first_object

_KEYS = ("s", "scores")
_TYPE_KEY = "t"
_NUMBER_KEYS, _SCORE_KEYS = ("n", "number", "candidate"), ("score", *_KEYS)
_NUMERIC = re.compile(r"\s*-?\d{1,18}(?:\.\d{1,18})?\s*")
_DEEPEST = 3  # Levels of objects around the scores


def _find_scores(value: object, *, depth: int = 0) -> tuple[Sequence[float], str] | None:
    """The scores in a JSON value, as the model wrote them, in order of the candidates, and the type it inferred.

    None if there are none or it is not certain which they are.
    """
    if isinstance(value, list):
        numbers = _by_entry(value)
        return (numbers, "") if numbers else _inside(value, depth)
    if not isinstance(value, Mapping):
        return None
    type_ = value.get(_TYPE_KEY)
    key = next((key for key in _KEYS if key in value), None)
    numbers = _in_order(value[key]) if key else _by_number([pair for pair in value.items() if pair[0] != _TYPE_KEY])
    if numbers is not None:
        return numbers, type_ if isinstance(type_, str) else ""
    return None if key else _inside(list(value.values()), depth)


def _inside(values: Sequence[object], depth: int) -> tuple[Sequence[float], str] | None:
    """The scores in the only one of the values that is an object or a list."""
    inner = [value for value in values if isinstance(value, Mapping | list)]
    return _find_scores(inner[0], depth=depth + 1) if len(inner) == 1 and depth < _DEEPEST else None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankResult:
    scores: tuple[float, ...] = ()  # In [0, 1], for a prefix of the candidates
    intent: str | None = None  # The capability type that it inferred
    usage: Usage = Usage()
    clipped: int = 0  # How many scores were out of range
    cut_off: bool = False  # Whether the reply was truncated
    void: str = ""  # The reason if there are no scores


_SCORES = re.compile(r'"(?:s|scores)"\s*:\s*\[')
_TYPE = re.compile(r'"t"\s*:\s*"([^"\\]*)"')
_NUMBER = re.compile(r"\s*(-?\d{1,18}(?:\.\d{1,18})?)\s*(?:,|(?=\]))")
_FEWEST_RANKED = 5  # Fewer scores may be 1, 2, … by chance
_CLOSED = re.compile(r"\s*\]")
_HIGH = 0.5
"""Share of the scale from which on equal scores of many candidates say nothing; low ones say that nothing fits."""


def parse_reply(reply: str, count: int, *, ended_early: bool = False) -> RerankResult:
    """Parse the scores of `count` candidates, asked for as `{"s": [count integers from 0 to 100]}`.

    Other forms that assign every score are read too: see the module. A truncated reply keeps its complete scores. Any
    other wrong number of scores is void, because scores belong to candidates by position. The reply is JSON, JSON
    somewhere in a text, or the beginning of either; `ended_early`: the model ran out of tokens.
    """
    value = _whole_value(reply)
    if value is None:
        return _beginning(reply, count)
    found = _find_scores(value)
    if found is None:
        return RerankResult(void="the reply has no list of scores")
    numbers, type_ = found
    given = len(numbers)
    cut_off = ended_early and given < count
    if given != count and not cut_off:
        return RerankResult(void=f"{given} scores for {count} candidates")
    if given >= _FEWEST_RANKED and sorted(numbers) == list(range(1, given + 1)):
        return RerankResult(void="the scores are the numbers from 1 on, which may be a ranking")
    return _to_unit_scores(numbers, type_, cut_off=cut_off)


def _whole_value(reply: str) -> object | None:
    """The list of objects that the reply is, else the first object in it; None if there is no complete one."""
    try:
        value = json.loads(reply)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, list) and value and isinstance(value[0], dict) else first_object(reply)


def _beginning(reply: str, count: int) -> RerankResult:
    """Parse the scores of a truncated reply; a number counts once a character follows it."""
    start = _SCORES.search(reply)
    if start is None:
        return RerankResult(void="the reply has no scores")
    numbers: list[float] = []
    position = start.end()
    while number := _NUMBER.match(reply, position):
        numbers.append(float(number[1]))
        position = number.end()
    closed = _CLOSED.match(reply, position) is not None
    if not numbers or len(numbers) > count or (closed and len(numbers) < count):
        return RerankResult(void=f"{len(numbers)} scores for {count} candidates", cut_off=not closed)
    type_ = _TYPE.search(reply, 0, start.start())
    return _to_unit_scores(numbers, type_[1] if type_ else "", cut_off=len(numbers) < count)


def _to_unit_scores(numbers: Sequence[float], type_: str, *, cut_off: bool) -> RerankResult:
    if not numbers:
        return RerankResult(void="the reply ended before the first score", cut_off=cut_off)
    if max(numbers) > 1 and any(0 < number < 1 for number in numbers):  # 0.95 of 1, or of 100?
        return RerankResult(void="some scores are fractions and others are above 1", cut_off=cut_off)
    top = 1 if _is_unit_scale(numbers) else 100
    inside = [min(top, max(0, number)) for number in numbers]
    clipped = sum(kept != number for kept, number in zip(inside, numbers, strict=True))
    if clipped == len(numbers) and not cut_off:
        return RerankResult(void="the scores are all out of range, which says nothing", cut_off=cut_off)
    if len(numbers) >= _FEWEST_RANKED and min(inside) == max(inside) >= _HIGH * top:
        return RerankResult(void="the scores are all equal, which says nothing", cut_off=cut_off)
    return RerankResult(scores=tuple(n / top for n in inside), intent=type_, clipped=clipped, cut_off=cut_off)


def _is_unit_scale(numbers: Sequence[float]) -> bool:
    """True if scores are on a scale from 0 to 1: none is above 1, and at least one is a fraction.

    Whole numbers stay on the scale that was asked for, also if all are 0 or 1: [1, 0, 0] is a usual answer where
    nothing fits. Should it have meant yes and no, the order is right all the same and the verdict errs to `none`.
    """
    return max(numbers) <= 1 and any(number != int(number) for number in numbers)


def known_type(name: str, profiles: Sequence[Profile]) -> str | None:
    """The capability type a reply names, if it is a kind or a tag of one of the candidates; case does not matter."""
    wanted = name.strip().lower()
    tags: Collection[str] = {tag for profile in profiles for tag in profile.type_tags}
    return next((known for known in (*Kind, *sorted(tags)) if known.lower() == wanted), None)
