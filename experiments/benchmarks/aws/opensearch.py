"""A real OpenSearch node for benchmarks, and an index on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.benchmarks.processes import module_process
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.index import OpenSearchIndex
from mats.adapters.opensearch.mapping import index_body, write_alias
from mats.ports import Encoder, Target

REGION = "us-east-1"


@contextmanager
def node(heap: str, running_at: str = "", *, kept: Path | None = None) -> Iterator[str]:
    """The address of a real OpenSearch node as it is distributed, over the data in `kept`; or `running_at`."""
    if running_at:
        yield running_at
        return
    arguments: tuple[str, ...] = ("--port", "0", "--heap", heap, "--collector", "G1", "--optimise")
    if kept:
        arguments += ("--kept", str(kept))
    with module_process("tests.aws.opensearch", *arguments, env={}) as (_, url):
        yield url


@contextmanager
def index_on(url: str, encoder: Encoder, *, read_s: float = 30) -> Iterator[OpenSearchIndex]:
    """An index on a node: new, or that of an earlier run."""
    domain, target = Domain(url, region=REGION, read_s=read_s), Target("capabilities-1", encoder.name)
    aliases = [write_alias(target.name), "capabilities"]
    domain.create(target.name, index_body(encoder.dimension, aliases=aliases, replicas="0-1", refresh="30s"))
    yield OpenSearchIndex(domain, lambda: [target], encoder=encoder.name, refresh="false")
