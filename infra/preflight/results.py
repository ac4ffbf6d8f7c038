"""Findings of a check, and running checks that may not be allowed to look."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from mats.domain.errors import DependencyFailed


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: `ok`, a `problem`, or `unknown` where the account did not let it look."""

    check: str
    status: Literal["ok", "problem", "unknown"]
    message: str
    """Of a problem: what is wrong, a colon, and what to do."""


def ok(check: str, message: str) -> CheckResult:
    """Nothing to do."""
    return CheckResult(check, "ok", message)


def problem(check: str, message: str, remedy: str) -> CheckResult:
    """Something to do before the deployment."""
    return CheckResult(check, "problem", f"{message}: {remedy}")


def run(checks: Iterable[tuple[str, Callable[[], Iterable[CheckResult]]]]) -> Iterator[CheckResult]:
    """The findings of checks, by name; one that AWS does not answer is `unknown`, and the others go on."""
    for name, check in checks:
        try:
            yield from check()
        except DependencyFailed as error:
            yield CheckResult(name, "unknown", f"not checked: {error}")
