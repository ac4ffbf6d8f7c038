"""Worlds for this suite: one account for each test, over servers that run once."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.aws.deployment import Deployment
from tests.aws.tables import credentials
from tests.infra.synth import templates
from tests.path.world import Make, Servers, World


@pytest.fixture
def servers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Servers:
    """The real ones; skips where they or the CDK are missing."""
    credentials(monkeypatch)
    urls = [request.getfixturevalue(f"{name}_url") for name in ("dynamodb", "opensearch")]
    return Servers(*urls)


@pytest.fixture
def made(servers: Servers) -> Iterator[Make]:
    """Makes worlds that end with the test."""
    with ExitStack() as entered:

        def make(
            change: Callable[[dict[str, Any]], object] | None = None,
            *,
            context: Mapping[str, str] | None = None,
            **options: Any,
        ) -> World:
            synthesized = copy.deepcopy(templates(**(context or {})))
            if change:
                change({id: each for stack in synthesized.values() for id, each in stack["Resources"].items()})
            return entered.enter_context(World(Deployment(*synthesized.values()), servers, **options))

        yield make


@pytest.fixture
def world(made: Make) -> World:
    """One with the default context and nothing that goes wrong."""
    return made()
