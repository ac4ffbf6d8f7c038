"""The engine upgrade of docs/decisions/0012: an index of OpenSearch 2.19, opened by a node of 3.x."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.generations import OpenSearchGenerations
from mats.adapters.opensearch.index import OpenSearchIndex
from mats.domain.capability.capability import Id, Kind
from mats.domain.search.query import Filter
from mats.ports import Stored, Target
from tests.aws.opensearch import OpenSearch3Node, OpenSearchNode
from tests.aws.tables import credentials
from tests.conftest import skip_or_fail
from tests.contract.test_baseline import VOCABULARY, descriptions
from tests.contract.test_index import ENCODER, entry, tombstone

pytestmark = pytest.mark.server

QUERIES, DEPTH = 30, 20
TOOLS = Filter(kinds=frozenset({Kind.TOOL}))


class ListedTargets(list[Target]):
    """A list of targets in memory."""

    def __call__(self) -> list[Target]:
        return list(self)

    def change(self, change: Callable[[list[Target]], list[Target]]) -> list[Target]:
        self[:] = change(self())
        return self()


@pytest.fixture
def generations(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], OpenSearchGenerations]:
    """Makes the generations at an address; the targets outlive the node, as they do in DynamoDB."""
    credentials(monkeypatch)
    targets = ListedTargets()
    return lambda url: OpenSearchGenerations(
        domain=Domain(url, read_s=10), targets=targets, encoder=ENCODER.name, dimension=ENCODER.dimension,
        replicas="0-1", under_way_s=0,
    )  # fmt: skip


def test_an_index_of_2_19_answers_alike_in_3_x_and_takes_writes(
    generations: Callable[[str], OpenSearchGenerations], tmp_path: Path
):
    if lacking := OpenSearch3Node.missing():
        skip_or_fail(lacking)
    entries = documents()
    with OpenSearchNode(kept=tmp_path) as node:
        before = search_index(generations(node.url), "2.19")
        before.put(entries)
        ids = [each.profile.id for each in entries]
        assert before.revisions(ids).keys() == set(ids)
        expected = answers(before)
    with OpenSearch3Node(kept=tmp_path) as node:
        renewed = generations(node.url)
        after = search_index(renewed, "3.5")
        assert_alike(answers(after), expected)

        after.put([entry("x003", "bakorapb anew", rev=2), entry("x007", "late", rev=1)])
        assert list(after.lexical(["anew"], Filter(), depth=5)) == [entries[3].profile.id]
        assert not after.lexical(["late"], Filter(), depth=5)

        target = renewed.begin()
        renewed.fill(target, entries)
        assert renewed.revisions(target, ids).keys() == set(ids)
        renewed.promote(target)
        assert renewed.current() == "capabilities-2"
        assert_alike(answers(after), expected)


def documents() -> list[Stored]:
    """Models and tools, most of them with a vector, and a tombstone."""
    made = [
        entry(f"x{n:03}", text, encoded=n % 10 != 0, kind=Kind.TOOL if n % 3 else Kind.MODEL)
        for n, text in enumerate(descriptions(random.Random(7)))
    ]
    made[7] = tombstone("x007", rev=2)
    return made


def search_index(made: OpenSearchGenerations, engine: str) -> OpenSearchIndex:
    return OpenSearchIndex(
        made.domain, made.writable, made.restore, encoder=ENCODER.name, refresh="true", engine=engine
    )


@dataclass
class Answers:
    """The answers of every kind of read to the same queries."""

    exact: dict[str, object] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    approximate: dict[str, set[Id]] = field(default_factory=dict)


def answers(index: OpenSearchIndex) -> Answers:
    chance, found = random.Random(11), Answers()
    everything = index.page(Filter(), after=None, limit=1_000)
    found.exact = {"page": everything, "fetch": dict(index.fetch(everything))}
    for _ in range(QUERIES):
        terms = chance.sample(VOCABULARY, 3)
        vector = ENCODER.encode_query(" ".join(terms))
        for admitted in (Filter(), TOOLS):
            about = f"{terms} {sorted(admitted.kinds)}"
            hits = index.lexical(terms, admitted, depth=DEPTH)
            found.exact[about] = list(hits)
            found.scores |= {f"{about} {id}": score for id, score in hits.items()}
            found.approximate[about] = {*index.neural(vector, admitted, depth=DEPTH)}
        for kind, measured in (
            ("bm25_of", index.bm25_of(terms, everything[:50])),
            ("cosine_of", index.cosine_of(vector, everything[:50])),
        ):
            found.scores |= {f"{kind} {terms} {id}": score for id, score in measured.items()}
    return found


def assert_alike(found: Answers, expected: Answers) -> None:
    """Equal but for rounding, and for what the search in a graph of vectors may miss."""
    assert found.exact == expected.exact
    assert found.scores == pytest.approx(expected.scores, rel=1e-6)
    shared = [len(ids & expected.approximate[about]) for about, ids in found.approximate.items()]
    assert min(shared) >= DEPTH - 2
    assert sum(shared) >= 0.99 * sum(map(len, expected.approximate.values()))
