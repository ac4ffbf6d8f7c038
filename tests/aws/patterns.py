"""EventBridge's event patterns, as far as ours go: what is not implemented raises, so nothing matches by accident."""

from typing import Any

Pattern = dict[str, Any]


class UnknownOperator(Exception):
    """The pattern uses what this stand-in does not implement, or what EventBridge would refuse."""


_ABSENT = object()


def matches(pattern: Pattern, event: Any) -> bool:
    """Whether every field is met: by any of its alternatives, and where the event has an array, by any of its items.

    Raises:
        UnknownOperator: also when a field before the faulty one does not match.
    """
    there = event if isinstance(event, dict) else {}
    met = [_field(rule, there.get(name, _ABSENT), name) for name, rule in pattern.items()]
    return all(met)


def _field(rule: Any, value: Any, name: str) -> bool:
    if name.startswith("$"):
        raise UnknownOperator(name)
    if isinstance(rule, dict):
        return matches(rule, value)
    if not isinstance(rule, list) or not rule:
        raise UnknownOperator(f"{name}: {rule!r} is neither a list of alternatives nor an object")
    candidates = value if isinstance(value, list) else [value]
    met = [_alternative(alternative, candidates or [_ABSENT]) for alternative in rule]
    return any(met)


def _alternative(rule: Any, candidates: list[Any]) -> bool:
    if not isinstance(rule, dict):
        return any(_same(rule, candidate) for candidate in candidates)
    if len(rule) != 1:
        raise UnknownOperator(str(rule))
    operator, operand = next(iter(rule.items()))
    match operator, operand:
        case "exists", bool():
            there = any(candidate is not _ABSENT and not isinstance(candidate, dict) for candidate in candidates)
            return there is operand
        case "prefix", str():
            return any(isinstance(candidate, str) and candidate.startswith(operand) for candidate in candidates)
        case "suffix", str():
            return any(isinstance(candidate, str) and candidate.endswith(operand) for candidate in candidates)
        case "equals-ignore-case", str():
            return any(isinstance(each, str) and each.casefold() == operand.casefold() for each in candidates)
        case "anything-but", _:
            return any(candidate is not _ABSENT and _anything_but(operand, candidate) for candidate in candidates)
    raise UnknownOperator(str(rule))


def _anything_but(operand: Any, candidate: Any) -> bool:
    if isinstance(operand, dict):
        if set(operand) != {"prefix"} or not isinstance(operand["prefix"], str):
            raise UnknownOperator(f"anything-but {operand}")
        return not (isinstance(candidate, str) and candidate.startswith(operand["prefix"]))
    return not any(_same(each, candidate) for each in (operand if isinstance(operand, list) else [operand]))


def _same(expected: Any, value: Any) -> bool:
    return value is not _ABSENT and isinstance(expected, bool) == isinstance(value, bool) and bool(expected == value)
