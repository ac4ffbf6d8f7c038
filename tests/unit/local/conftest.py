"""A local registry of its own for each test."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mats.bootstrap.local import LocalSystem, local_system
from mats.settings import Settings


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalSystem]:
    """An empty registry, searched by words."""
    opened = local_system(replace(Settings(), home=tmp_path / "home", encoder="none"))
    yield opened
    opened.close()
