"""What a caller lacks for calling a capability."""

import json
from typing import Any

import pytest

from mats.domain.profile.profile import Profile
from mats.domain.ranking.query import Holds
from mats.domain.shortlist.fitness import Fitness
from tests.builders import a_profile

URL = "https://pay.example.com/mcp"


def called(**invocation: Any) -> Profile:
    """The profile of a capability that is called in this way; without any, in none."""
    return a_profile(namespace="com.acme").model_copy(update={"invocation": json.dumps(invocation)})


MCP = {"protocol": "mcp", "transport": "streamable-http", "url": URL}
KEYED = {**MCP, "auth": [{"scheme": "bearer"}, {"scheme": "apiKey"}]}
EITHER = {**MCP, "auth": [{"scheme": "bearer", "option": 1}, {"scheme": "apiKey", "option": 2}]}


@pytest.mark.parametrize(
    ("invocation", "holds", "because"),
    [
        (MCP, {}, ""),
        (MCP, {"auth": []}, ""),
        (KEYED, {"auth": ["bearer"]}, "needs apiKey and bearer"),
        (KEYED, {"auth": ["bearer", "apiKey@com"]}, ""),
        (KEYED, {"auth": ["bearer", "apiKey@org.other"]}, "needs apiKey and bearer"),
        (EITHER, {"auth": ["apiKey"]}, ""),
        (EITHER, {"auth": []}, "needs bearer or apiKey"),
        (MCP, {"transports": ["stdio", "mcp"]}, ""),
        (MCP, {"transports": ["stdio", "http"]}, "is called over mcp/streamable-http"),
        (MCP, {"read_only": True}, "is not said to be read-only"),
        ({}, {"auth": []}, "its owner gave no way to call it"),
    ],
    ids=str,
)
def test_the_reason_that_a_capability_cannot_be_called(invocation, holds, because):
    profile, asked = called(**invocation), Holds(**holds)
    lenient, strict = Fitness(asked, {}), Fitness(asked.model_copy(update={"leave_out": True}), {})
    assert lenient.because(profile) == because
    assert (lenient.admits(profile), lenient.excluded) == (True, {})
    assert strict.admits(profile) is (not because)
    assert strict.excluded == ({profile.id: because} if because else {})
