"""The three tiers of tests, the judged data sets, and what may be skipped.

A test is of the server tier (marker `server`) if it is in one of SERVER_FOLDERS, asks for a fixture of
SERVER_FIXTURES, or is marked: `make test` leaves it out, `make test-servers` runs it. A test marked `long`, which names
a slice of that tier, or one of LONG runs in `make test-long` only. Tests that share a server or a browser run on the
same worker (`SharedServers`), so that each of these starts once.
"""

import os
import shutil
import tempfile
import time
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.aws.fixtures import dynamodb_url, opensearch3_url, opensearch_url  # noqa: F401

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")  # no deadline per example, the same examples in every run

TESTS = Path(__file__).parent
ROOT = TESTS.parent
REQUIRED = os.environ.get("REQUIRE_SERVERS") == "1"
DATA = Path(os.environ.get("MATS_DATA") or ROOT.parent / "shared" / "data")
SERVER_FOLDERS = {"aws", "console", "frameworks", "infra", "path"}
SERVER_FIXTURES = {"data", "dynamodb_url", "opensearch3_url", "opensearch_url"}
LONG = {"frameworks/": "frameworks", "OpenSearch 3": "engines", "test_engine_upgrade": "engines"}
"""Parts of a test's id, and the slice of the long tier that they put it in."""
_LACKING = "Skipped: no "

_load_file = JSONFileLoader.load_file


@cache
def _service_model(path: str) -> Any:
    """A file of botocore, parsed once; a client of a new session parses some megabytes of them."""
    return _load_file(JSONFileLoader(), path)


JSONFileLoader.load_file = lambda self, path: _service_model(path)


def skip_or_fail(lacking: str) -> None:
    """Skip for something this machine lacks; where everything is required, fail instead."""
    if REQUIRED:
        pytest.fail(f"REQUIRE_SERVERS=1, but there is no {lacking}")
    pytest.skip(_LACKING.removeprefix("Skipped: ") + lacking)


@pytest.fixture(scope="session", autouse=True)
def shared_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """Tell where the workers of a run leave files for each other."""
    if worker_id != "master":
        os.environ["MATS_TESTS_SHARED"] = str(tmp_path_factory.getbasetemp().parent)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of judged data sets outside the repository."""
    if not (DATA / "tools").is_dir():
        lacking = pytest.skip if os.environ.get("MATS_WITHOUT_DATA") == "1" else skip_or_fail
        lacking("folder of judged data sets (MATS_DATA)")
    return DATA


MEMORY, ROOM = Path("/dev/shm"), 8 * 10**9  # A file system in memory, and the bytes free there with which it is used


def pytest_configure(config: pytest.Config) -> None:
    """Keep what tests write in memory, where `fsync` is free, until the end of the run; with --basetemp on disk.

    What a killed run has left goes after a day.
    """
    if hasattr(config, "workerinput") or config.option.basetemp or not MEMORY.is_dir():
        return
    for left in MEMORY.glob("mats-tests-*"):
        if time.time() - left.stat().st_mtime > 24 * 3600:
            shutil.rmtree(left, ignore_errors=True)
    if shutil.disk_usage(MEMORY).free >= ROOM and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        tempfile.tempdir = os.environ["TMPDIR"] = folder = tempfile.mkdtemp(prefix="mats-tests-", dir=MEMORY)
        Path(folder).chmod(0o711)  # as others may pass through /tmp
        Finalize(
            None, shutil.rmtree, args=[folder, True], exitpriority=-200
        )  # after multiprocessing has removed its own


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import what the first tier deselects anyway: some of it needs the CDK."""
    deselected = "not server" in str(config.option.markexpr)
    return True if deselected and collection_path in [TESTS / folder for folder in SERVER_FOLDERS] else None


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Mark the tiers of servers and of long tests."""
    for item in items:
        for slice in {slice for part, slice in LONG.items() if part in item.nodeid}:
            item.add_marker(pytest.mark.long(slice=slice))
        folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if folder in SERVER_FOLDERS or SERVER_FIXTURES & {*item.fixturenames}:
            item.add_marker(pytest.mark.server)


class SharedServers(LoadScopeScheduling):
    """Sends tests that share a server or the data sets to one worker, and each file of the others to one."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        folder = path.removeprefix("tests/").partition("/")[0]
        if folder in ("console", "infra"):
            return path
        if folder in ("frameworks", "packaging", "path"):
            return folder
        return "data" if "real_data" in path else "servers"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """The scheduler of `--dist loadscope`; groups by marker need node ids that pytest 9.2 does not let xdist change."""
    return SharedServers(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name in one line what could not be tested here."""
    reasons = [report.longrepr[2] for report in terminalreporter.getreports("skipped") if report.longrepr]
    if lacking := {reason.removeprefix(_LACKING) for reason in reasons if reason.startswith(_LACKING)}:
        terminalreporter.write_line(f"Not tested on this machine, which lacks: {', '.join(sorted(lacking))}.")
