"""What a caller cannot call with what it holds comes behind equals, or is left out with the reason."""

import json

import pytest

from tests.integration.conftest import Mats

REQUEST = "refund a card payment"
USES = ("of the shop", "who travel", "in Brazil", "with a complaint", "of a bank", "abroad")


@pytest.fixture
def refunds(mats: Mats) -> Mats:
    """Six tools alike; the first three have no endpoint."""
    rows = [
        {
            "kind": "tool", "namespace": f"org.n{number}", "name": "refund_card_payment",
            "description": f"Refund a card payment for customers {use}.",
            **({"endpoint": f"https://n{number}.example/mcp", "tags": ["mcp"]} if number >= 3 else {}),
        }
        for number, use in enumerate(USES)
    ]  # fmt: skip
    mats("import", "-", stdin="\n".join(map(json.dumps, rows)).encode()).done()
    return mats


def test_what_the_caller_asks_to_leave_out_is_listed_with_the_reason(refunds: Mats):
    holds = json.dumps({"transports": ["mcp"], "leave_out": True})
    found = refunds("search", REQUEST, "--holds", holds, "--json").json
    assert {result["namespace"] for result in found["results"]} == {"org.n3", "org.n4", "org.n5"}
    assert {each["id"].partition("/")[0] for each in found["excluded"]} == {"org.n0", "org.n1", "org.n2"}
    assert {each["because"] for each in found["excluded"]} == {"its owner gave no way to call it"}
    nothing = refunds("search", REQUEST, "--holds", json.dumps({"transports": ["a2a"], "leave_out": True})).out
    assert "Verdict: none: no results; " in nothing
    assert "Left out: org." in nothing
    assert ": is called over mcp" in nothing
