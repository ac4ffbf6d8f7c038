"""Contract of the port `ProofBook`."""

import random

import pytest

from mats.adapters.dynamodb.operators import DynamoProofs
from mats.adapters.dynamodb.tables import Tables
from mats.domain.shortlist.fitness import Life, Proof, Target
from mats.ports import ProofBook
from tests.aws.tables import a_table

AT, SINCE = "2026-01-01T00:30:00+00:00", "2026-01-01T00:00:00+00:00"
MCP, HEAD = Target("mcp", "https://pay.example.com/mcp"), Target("head", "https://pay.example.com/mcp")


def test_proofs_are_read_as_they_were_saved_last(proofs: ProofBook):
    assert proofs.load() == {}
    saved = {
        MCP: Proof(Life.DEAD, AT, "kein Anschluß: 発注", 3, SINCE),
        HEAD: Proof(Life.GATED, AT, "status 401"),
        Target("a2a", "https://a.example.com"): Proof(Life.ALIVE, AT),
        Target("a2a", "https://b.example.com"): Proof(Life.MISSED, AT, "no answer", 1, AT),
    }
    proofs.save(saved)
    assert proofs.load() == saved
    proofs.save({MCP: Proof(Life.ALIVE, AT)})
    assert proofs.load() == {MCP: Proof(Life.ALIVE, AT)}
    proofs.save({})
    assert proofs.load() == {}


@pytest.mark.server
def test_an_item_without_room_drops_the_oldest_of_living_endpoints(tables: Tables):
    book, names = DynamoProofs(tables, a_table(tables, keys=("name",))), random.Random(1)
    targets = [Target("head", f"https://example.com/{names.randbytes(150).hex()}") for _ in range(3_200)]
    living = {
        each: Proof(Life.ALIVE, f"2026-01-{1 + day // 200:02}T00:00:00+00:00") for day, each in enumerate(targets)
    }
    dead = {Target("mcp", f"https://{n}.example.com"): Proof(Life.DEAD, SINCE, "", 3, SINCE) for n in range(100)}
    book.save(living | dead)
    kept = book.load()
    assert dead.items() <= kept.items()
    lost = [proof.at for target, proof in living.items() if target not in kept]
    assert lost
    assert max(lost) <= min(proof.at for target, proof in kept.items() if target in living)
