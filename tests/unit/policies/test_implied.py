"""Steps that a request implies."""

from array import array
from collections.abc import Sequence

import pytest

from mats.domain.policies.implied import STEPS, ImpliedStep
from mats.domain.policies.policy import Ask
from mats.domain.search.query import Filter, Query
from tests.builders import a_discover, a_profile
from tests.fakes import MemoryIndex
from tests.world import ENCODER, indexed

WRITE, CLOCK, PLACE, CALCULATOR = (step.text for step in STEPS)


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("collect the open disputes of this month and save the overview to reports/disputes.md for me", [WRITE]),
        ("give me a summary of all of these pages of our wiki, and put it into summary.html", [WRITE]),
        ("is there still a seat on the train from Leeds tomorrow morning, and how much is it", [CLOCK]),
        ("find out who is on call next Monday and tell the team about the change of the plan", [CLOCK]),
        ("plan a walking route of an hour and a half from the station in Leeds to the river", [PLACE]),
        ("which flats for two adults and a child are there in May within 5 km of the Alhambra", [PLACE]),
        ("plan a nice walking route of an hour and a half from the station to the river", []),
        ("read the exported invoices of each client and say how much tax they owe in total", [CALCULATOR]),
        ("tomorrow, calculate what the trip from Leeds to York costs us and write it to costs.csv", None),
        ("save it to notes.md", []),
        ("a route to Leeds for tomorrow", []),
        ("near " * 400, []),
    ],
)
def test_patterns_of_long_requests_imply_steps(text: str, texts: Sequence[str] | None):
    asked: list[str] = []

    def encode(step: str):
        asked.append(step)
        return array("f", [1.0] * 32)

    ImpliedStep(encode).look(Ask.of(text, Filter()), MemoryIndex(), None, None)
    assert asked == ([WRITE, CLOCK, PLACE, CALCULATOR] if texts is None else texts)


TASK = "collect the open disputes of our customers at Stripe and save an overview to reports/disputes.md"
DISPUTES = [a_profile(name=f"disputes {n}", description="list open disputes of customers at stripe") for n in range(9)]
FILE = a_profile(name="write_file", description="write a file")


@pytest.mark.parametrize("near", [True, False])
def test_what_serves_a_step_follows_the_first_result_if_it_is_near_to_the_step(near: bool):
    other = a_profile(name="write_of", description="a debt of a customer whose file is old, by the book of the year")
    profiles = [*DISPUTES, FILE if near else other]
    policy = ImpliedStep(ENCODER.encode_query)
    answer = a_discover(indexed(*profiles), encoder=ENCODER, policies=[policy], k=5).answer(
        Query.parse({"query": TASK, "limit": 5})
    )
    names = [result.candidate.profile.name for result in answer.ranked]
    assert names[0].startswith("disputes")
    assert (names[1] == "write_file") is near
    assert near or all(name.startswith("disputes") for name in names)


def test_what_serves_a_step_and_is_first_anyway_stays_first():
    text = "please write a file and a file and a file of these words, then save it as notes.md"
    policy = ImpliedStep(ENCODER.encode_query)
    discover = a_discover(indexed(*DISPUTES, FILE), encoder=ENCODER, policies=[policy])
    assert discover.answer(Query.parse({"query": text})).ranked[0].candidate.profile.name == "write_file"
