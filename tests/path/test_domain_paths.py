"""The effect of the paths that each function's role is allowed, on a real node."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from infra.constructs.search_domain import INDEX
from tests.aws.recorder import Account
from tests.infra.synth import deployment
from tests.path.index_requests import Node, Request, allowed_requests
from tests.path.world import Servers, rights_of

pytestmark = pytest.mark.server

DOMAIN = Account().domain
QUERIES_BY_SUFFIX = {"es:ESHttpPost": [f"capabilities*/_{call}" for call in ("search", "msearch", "count", "mget")]}


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


@pytest.mark.parametrize(
    ("calls", "writes"),
    [
        (QUERIES_BY_SUFFIX, {"_doc/_search", "_doc/_count", "_create/_mget", "_update/_search"}),
        (INDEX, {"_settings", "_mapping", "_alias/x", "_doc/x"}),
    ],
    ids=["queries by suffix", "INDEX without INDEX_DENIED"],
)
def test_wildcards_alone_let_through_other_writes_and_this_suite_notices(
    node: Node, calls: dict[str, list[str]], writes: set[str]
):
    statements = [
        {"Effect": "Allow", "Action": action, "Resource": [f"{DOMAIN}/{path}" for path in paths]}
        for action, paths in calls.items()
    ]
    below = "/capabilities-1/"
    requests = [each for each in allowed_requests(statements, DOMAIN) if each.path.startswith(below)]
    assert {each.path.removeprefix(below) for each in node.changes(requests)} >= writes


def allowed_to(function: str) -> Sequence[Request]:
    """The requests that the role of a function may send, by its own policy or by the domain's."""
    deployed = deployment()
    own, of_the_domain = rights_of(deployed, deployed.one("AWS::Lambda::Function", function))
    return allowed_requests([*own, *of_the_domain], Account.of(deployed).domain)
