"""Fixtures of the tests of mats that those of experiments use, too."""

from tests.conftest import data, pytest_collection_modifyitems
from tests.integration.conftest import encoder, running, server

__all__ = ["data", "encoder", "pytest_collection_modifyitems", "running", "server"]
