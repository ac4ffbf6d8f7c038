"""Tokens that a model reads of MCP over the sample registry: docs/decisions/0045."""

from collections.abc import Iterator

import pytest

from experiments.benchmarks import mcp
from experiments.benchmarks.reranker import token_counter
from mats.edge.app import Application
from mats.ports import Encoder
from mats.settings import Settings

ANSWER, DEFINITIONS = 500, 900


@pytest.fixture(scope="module")
def count(encoder: Encoder) -> mcp.Count:
    return token_counter()


@pytest.fixture(scope="module")
def application(encoder: Encoder) -> Iterator[Application]:
    with mcp.sample_application(Settings()) as application:
        yield application


def test_definitions_leave_room_in_a_prompt(count):
    assert mcp.count_definitions(count) <= DEFINITIONS


def test_an_answer_to_any_query_is_short(application, count):
    counted = mcp.count_answers(mcp.shortlists(application, "weak"), count)
    assert counted["text"]["max"] <= ANSWER
    assert counted["structured"]["max"] <= ANSWER


@pytest.mark.parametrize("summaries", ["of owners", "of a writer"])
def test_five_results_are_short(application, count, summaries):
    answers = list(mcp.shortlists(application, 0))
    assert {len(answer.results) for answer in answers} == {mcp.RESULTS}
    counted = mcp.count_answers(map(mcp.with_full_summaries, answers) if summaries == "of a writer" else answers, count)
    assert counted["text"]["max"] <= ANSWER
    assert counted["structured"]["p50"] <= ANSWER
