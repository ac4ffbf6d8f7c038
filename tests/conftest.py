"""What every suite shares: where the judged data sets are, and what may be skipped."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.servers.fixtures import dynamodb_url, opensearch_url  # noqa: F401

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")  # no stopwatch, the same examples in every run

ROOT = Path(__file__).parents[1]
REQUIRED = os.environ.get("MATS_REQUIRE_SERVERS") == "1"
DATA = Path(os.environ.get("MATS_DATA") or ROOT.parent / "shared" / "data")

_missing: set[str] = set()


def skip_or_fail(what: str) -> None:
    """Skip for something this machine lacks; where everything is required, fail instead."""
    if REQUIRED:
        pytest.fail(f"MATS_REQUIRE_SERVERS=1, but there is no {what}")
    _missing.add(what)
    pytest.skip(f"no {what}")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of judged data sets outside the repository."""
    if not (DATA / "tools").is_dir():
        skip_or_fail("folder of judged data sets (MATS_DATA)")
    return DATA


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name in one line what could not be tested here."""
    if _missing:
        terminalreporter.write_line(f"Not tested on this machine, for want of: {', '.join(sorted(_missing))}.")
