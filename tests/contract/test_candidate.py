"""Contract of the port `CandidateIndex`: results as after registering, without a saved entry."""

import json
import random
import threading
import time
from collections.abc import Iterator

import pytest

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.index import SqliteIndex
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import profile_of
from mats.domain.search.query import Filter
from mats.domain.text.words import query_terms
from mats.ports import SearchIndex, Stored
from tests.conftest import ROOT
from tests.fakes import FakeEncoder

ENCODER = FakeEncoder()
EVERYONE = Filter()
KNOWN = Id("com.amazon.bedrock/amazon.nova-lite-v1:0")


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (ROOT / "examples" / name).read_text().splitlines()]


def stored(row: dict, *, rev: int = 1, **changes) -> Stored:
    profile = profile_of(Registration.parse(row), origin="")
    made = profile.model_copy(update={"rev": rev, "encoder": ENCODER.name, **changes})
    return Stored(made, ENCODER.encode_query(made.source.description))


SAMPLE = [stored(row) for row in lines("registry.jsonl")]
QUERIES = random.Random(3).sample([row["text"] for row in lines("queries.jsonl")], 12)


def answers(index: SearchIndex, ids: list[Id]) -> list:
    """Every read of discovery from an index."""
    found: list = [index.fetch(ids).keys(), index.page(EVERYONE, after=None, limit=1_000)]
    for text in QUERIES:
        terms, vector = query_terms(text), ENCODER.encode_query(text)
        some = Filter(namespaces=frozenset({"com.amazon"}))
        found += [list(index.lexical(terms, admitted, depth=20).items()) for admitted in (EVERYONE, some)]
        found.append(list(index.neural(vector, EVERYONE, depth=20).items()))
        found += [index.bm25_of(terms, ids), index.cosine_of(vector, ids)]
    return found


@pytest.fixture(params=["new", "changed"])
def candidate(request: pytest.FixtureRequest) -> Stored:
    row = next(row for row in lines("registry.jsonl") if f"{row['namespace']}/{row['name']}" == KNOWN)
    row = {**row, "description": f"{row['description']} For inexpensive multimodal pictures, documents and clips."}
    return stored({**row, "namespace": "org.copy"} if request.param == "new" else row, rev=0)


@pytest.fixture
def index(database: Database) -> SqliteIndex:
    index = SqliteIndex(database, encoder=ENCODER.name)
    index.put(SAMPLE)
    return index


@pytest.fixture
def elsewhere(database: Database) -> Iterator[SqliteIndex]:
    """The same file, opened as by another process."""
    other = Database(database.path)
    yield SqliteIndex(other, encoder=ENCODER.name)
    other.close()


def test_a_preview_equals_the_result_of_registering(index, candidate):
    ids = [entry.profile.id for entry in SAMPLE[:30]] + [candidate.profile.id]
    with index.with_candidate(candidate) as preview:
        foreseen = answers(preview, ids)
    index.put([Stored(candidate.profile.model_copy(update={"rev": 2}), candidate.vector)])
    assert foreseen == answers(index, ids)


def test_a_candidate_leaves_no_trace(index, elsewhere, candidate):
    ids = [entry.profile.id for entry in SAMPLE] + [candidate.profile.id]
    before, revisions = answers(index, ids), index.revisions(ids)
    with index.with_candidate(candidate) as preview:
        assert answers(preview, ids) != before
        assert answers(index, ids) == answers(elsewhere, ids) == before
    for one in (index, elsewhere):
        assert answers(one, ids) == before
        assert one.revisions(ids) == revisions


def test_a_candidate_is_rolled_back_when_the_block_fails(index, candidate):
    ids = [candidate.profile.id]
    before = answers(index, ids)
    with pytest.raises(ZeroDivisionError), index.with_candidate(candidate):
        raise ZeroDivisionError
    assert answers(index, ids) == before
    index.put([Stored(candidate.profile.model_copy(update={"rev": 2}), candidate.vector)])
    assert index.fetch(ids)


def test_writers_wait_for_the_end_of_a_preview(index, elsewhere, candidate):
    late = SAMPLE[0].profile.model_copy(update={"rev": 2})
    writer = threading.Thread(target=elsewhere.put, args=([Stored(late, SAMPLE[0].vector)],))
    with index.with_candidate(candidate):
        writer.start()
        time.sleep(0.05)
        assert index.revisions([late.id]) == {late.id: 1}
    writer.join(timeout=10)
    assert index.revisions([late.id]) == {late.id: 2}


def test_a_search_that_is_late_does_not_reach_the_index(index, candidate):
    with index.with_candidate(candidate) as preview:
        pass
    with pytest.raises(DependencyFailed, match="ended"):
        preview.fetch([candidate.profile.id])


def test_previews_beside_each_other_see_their_own_candidate(index):
    found: dict[str, list] = {}

    def search(name: str) -> None:
        made = stored({"namespace": "org.new", "name": name, "kind": "tool", "description": "zebra crossings"}, rev=0)
        with index.with_candidate(made) as preview:
            found[name] = list(preview.lexical(["zebra"], EVERYONE, depth=5))

    threads = [threading.Thread(target=search, args=(f"n{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert found == {f"n{n}": [f"org.new/n{n}"] for n in range(4)}
