"""The servers that suites share: each starts when a test first asks for it, once per run, and stops at its end.

`tests/conftest.py` brings them in by importing each.
"""

from collections.abc import Iterator

import pytest

from tests.aws.dynamodb import DynamoDBLocal
from tests.aws.jvm import JavaServer
from tests.aws.opensearch import OpenSearch3Node, OpenSearchNode

_AS_DEPLOYED = {"rest.action.multi.allow_explicit_index": "false", "action.auto_create_index": "true"}
"""The first is how our stacks set a domain, the second how every domain comes."""


@pytest.fixture(scope="session")
def opensearch_url() -> Iterator[str]:
    """Where an OpenSearch node listens; suites keep apart by the names of their indices."""
    yield from _url(OpenSearchNode(settings=_AS_DEPLOYED))


@pytest.fixture(scope="session")
def opensearch3_url() -> Iterator[str]:
    """The same for the next major version of OpenSearch."""
    yield from _url(OpenSearch3Node(settings=_AS_DEPLOYED))


@pytest.fixture(scope="session")
def dynamodb_url() -> Iterator[str]:
    """Where DynamoDB Local listens; suites keep apart by the names of their tables."""
    yield from _url(DynamoDBLocal())


def _url(server: JavaServer) -> Iterator[str]:
    from tests.conftest import skip_or_fail  # it imports this module

    if lacking := server.missing():
        skip_or_fail(lacking)
    with server:
        yield server.url
