"""Whether a capability can be called now: looks in a row, what is looked at, and what a caller lacks."""

import json
from typing import Any

import pytest

from mats.domain.profile.profile import Profile
from mats.domain.ranking.query import Holds
from mats.domain.shortlist.fitness import (
    Fitness,
    Life,
    Proof,
    Sighting,
    Target,
    proofs_from_text,
    proofs_to_text,
    target_of,
)
from tests.builders import a_profile

ALIVE, GATED, MISSED = Sighting(Life.ALIVE), Sighting(Life.GATED, "status 401"), Sighting(Life.MISSED, "no answer")
URL = "https://pay.example.com/mcp"


def at(minute: int) -> str:
    return f"2026-01-01T00:{minute:02}:00+00:00"


def called(**invocation: Any) -> Profile:
    """The profile of a capability that is called in this way; without any, in none."""
    return a_profile(namespace="com.acme").model_copy(update={"invocation": json.dumps(invocation)})


MCP = {"protocol": "mcp", "transport": "streamable-http", "url": URL}
KEYED = {**MCP, "auth": [{"scheme": "bearer"}, {"scheme": "apiKey"}]}
EITHER = {**MCP, "auth": [{"scheme": "bearer", "option": 1}, {"scheme": "apiKey", "option": 2}]}


@pytest.mark.parametrize(
    ("looks", "life"),
    [
        ([(0, GATED)], Life.GATED),
        ([(0, MISSED), (30, MISSED)], Life.MISSED),
        ([(0, MISSED), (5, MISSED), (19, MISSED)], Life.MISSED),
        ([(0, MISSED), (10, MISSED), (20, MISSED)], Life.DEAD),
        ([(0, MISSED), (10, MISSED), (20, MISSED), (30, ALIVE)], Life.ALIVE),
        ([(0, MISSED), (10, MISSED), (20, GATED), (30, MISSED), (40, MISSED)], Life.MISSED),
    ],
    ids=str,
)
def test_an_endpoint_is_dead_after_three_misses_in_a_row_over_twenty_minutes(looks, life):
    proof = Proof(Life.ALIVE, at(0))
    for minute, seen in looks:
        proof = proof.follow(seen, at(minute))
    assert proof.life is life
    assert bool(proof.misses) is (life in (Life.MISSED, Life.DEAD)) is bool(proof.since)


def test_text_of_proofs_has_those_not_alive_first_and_the_latest_first():
    looks = (("a", Life.ALIVE, 1), ("b", Life.ALIVE, 3), ("c", Life.DEAD, 0), ("d", Life.GATED, 2))
    given = {Target("head", name): Proof(life, at(minute)) for name, life, minute in looks}
    read = proofs_from_text(proofs_to_text(given))
    assert read == given
    assert [target.url for target in read] == ["d", "c", "b", "a"]
    assert proofs_from_text("") == {}


@pytest.mark.parametrize(
    ("invocation", "target"),
    [
        (MCP, Target("mcp", URL)),
        ({**MCP, "transport": "sse"}, Target("head", URL)),
        ({**MCP, "inputs": ["org"]}, None),
        ({"protocol": "mcp", "transport": "stdio", "command": "npx"}, None),
        ({"protocol": "http", "url": f"{URL}?org={{org}}"}, Target("head", URL)),
        (
            {"protocol": "http", "url": "https://pay.example.com/v1/{id}/x"},
            Target("head", "https://pay.example.com/v1/"),
        ),
        ({"protocol": "http", "url": "https://{host}/v1"}, None),
        ({"protocol": "a2a", "url": URL}, Target("a2a", URL)),
        ({"protocol": "a2a", "url": URL, "transport": "GRPC"}, None),
    ],
    ids=str,
)
def test_what_is_looked_at_is_an_address_without_what_a_caller_fills_in(invocation, target):
    assert target_of(called(**invocation)) == target


@pytest.mark.parametrize(
    ("invocation", "holds", "life", "because"),
    [
        (MCP, None, None, ""),
        (MCP, None, Life.GATED, ""),
        (MCP, None, Life.MISSED, "endpoint missed: status 401"),
        (MCP, None, Life.DEAD, "endpoint dead: status 401"),
        (MCP, {"transports": ["mcp"]}, Life.DEAD, "endpoint dead: status 401"),
        (MCP, {"auth": []}, Life.GATED, "asks for authentication: status 401"),
        (MCP, {"auth": ["bearer"]}, Life.GATED, ""),
        (MCP, {"auth": ["bearer@org.other"]}, Life.GATED, "asks for authentication: status 401"),
        (KEYED, {"auth": ["bearer"]}, None, "needs apiKey and bearer"),
        (KEYED, {"auth": ["bearer", "apiKey@com"]}, None, ""),
        (EITHER, {"auth": ["apiKey"]}, None, ""),
        (EITHER, {"auth": []}, None, "needs bearer or apiKey"),
        (MCP, {"transports": ["stdio", "http"]}, None, "is called over mcp/streamable-http"),
        (MCP, {"read_only": True}, None, "is not said to be read-only"),
        ({}, {"auth": []}, None, "its owner gave no way to call it"),
    ],
    ids=str,
)
def test_the_reason_that_a_capability_cannot_be_called_now(invocation, holds, life, because):
    proofs = {Target("mcp", URL): Proof(life, at(0), "status 401")} if life else {}
    asked = Holds(**holds) if holds is not None else None
    profile, fitness = called(**invocation), Fitness(asked, proofs, {})
    assert fitness.because(profile) == because
    assert fitness.admits(profile)
    assert fitness.excluded == {}
    if asked:
        strict = Fitness(asked.model_copy(update={"leave_out": True}), proofs, {})
        left_out = {profile.id: because} if because and life is not Life.MISSED else {}
        assert strict.admits(profile) is (not left_out)
        assert strict.excluded == left_out
