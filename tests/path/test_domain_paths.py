"""The effect of the paths that each function's role is allowed, on a real node."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from tests.aws.recorder import Account
from tests.infra.synth import deployment
from tests.path.index_requests import Node, Request, allowed_requests
from tests.path.world import Servers, rights_of

pytestmark = pytest.mark.server

DOMAIN = Account().domain


@pytest.fixture
def node(servers: Servers) -> Iterator[Node]:
    with closing(Node(servers.opensearch)) as node:
        yield node


@pytest.fixture(params=["opensearch_url", "opensearch3_url"], ids=["OpenSearch 2.19", "OpenSearch 3.5"])
def any_node(servers: Servers, request: pytest.FixtureRequest) -> Iterator[Node]:
    """`servers` makes sure that there is a CDK."""
    with closing(Node(request.getfixturevalue(request.param))) as node:
        yield node


def test_discovery_can_change_nothing(any_node: Node):
    allowed = allowed_to("Discovery")
    assert {"/capabilities/_search", "/capabilities/_mget"} < {each.path for each in allowed}
    assert any_node.changes(allowed) == {}


def test_enrichment_can_write_documents_and_make_indices_and_nothing_else(any_node: Node):
    changes = any_node.changes(allowed_to("Enrichment"))
    assert changes.pop(Request("POST", "/capabilities-1-write/_bulk")) == {"documents of capabilities-1"}
    assert changes.pop(Request("PUT", "/capabilities-3")) == {"index capabilities-3"}
    for (method, path), parts in changes.items():
        name = path.strip("/").removesuffix("/_bulk")
        assert name.startswith("capabilities-")
        assert method == "PUT" or name.endswith("-write")
        assert parts <= {f"index {name}", f"documents of {name}"}, path


def allowed_to(function: str) -> Sequence[Request]:
    """The requests that the role of a function may send, by its own policy or by the domain's."""
    deployed = deployment()
    own, of_the_domain = rights_of(deployed, deployed.one("AWS::Lambda::Function", function))
    return allowed_requests([*own, *of_the_domain], Account.of(deployed).domain)
