"""One test for many cases of a rule: every case runs, and all that fail are reported together."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

import pytest


@dataclass
class Failures:
    """The cases of a rule that failed: `with Failures() as failures`, then `with failures.of(case)` for each case."""

    failed: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def of(self, *case: object) -> Iterator[None]:
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            self.failed[", ".join(map(str, case))] = f"{type(error).__name__}: {error}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self.failed:
            pytest.fail("\n\n".join(f"[{case}]\n{message}" for case, message in self.failed.items()), pytrace=False)
