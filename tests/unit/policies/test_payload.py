"""Text that a request brings along."""

import pytest

from mats.domain.policies.payload import Payload, without_payload
from mats.domain.policies.policy import Ask
from mats.domain.search.query import Filter
from tests.fakes import MemoryIndex

EMAIL = "Dear all, I hope that this message finds you well"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"edit this cold email: '{EMAIL}' and make it short", "edit this cold email: and make it short"),
        (f'edit this cold email: "{EMAIL}"', "edit this cold email:"),
        (f"edit this cold email: “{EMAIL}”", "edit this cold email:"),
        ("explain this compiler error:\n```csharp\nint x = y;\n```\nplease", "explain this compiler error: please"),
        ("explain this compiler error:\n```\nint x = y;", "explain this compiler error:"),
        ("translate an invoice into French\n### Input: Dear Sir or Madam", "translate an invoice into French"),
        ("summarise a long news article\n###Input:\nThe bank\n### Output", "summarise a long news article ### Output"),
    ],
)  # fmt: skip
def test_code_input_and_long_quotations_are_left_out(text: str, rest: str):
    assert " ".join(without_payload(text).split()) == rest


@pytest.mark.parametrize(
    "text",
    [
        "make a ticket 'login fails' in Jira for the team",
        "it's the owner's file that isn't where the team's members put it, and that's all",
        f"translate: '{EMAIL}'",
        "```\nprint(1)\n```",
        'which of the 5" screens and the 7" screens are in the shop, and how much are they',
        "",
    ],
)
def test_what_names_the_thing_or_is_the_whole_request_stays(text: str):
    assert without_payload(text) == text


def test_its_words_are_not_searched_and_the_whole_is_encoded():
    text = f"edit this cold email: '{EMAIL}'"
    ask, _ = Payload().read(Ask.of(text, Filter()), MemoryIndex())
    assert (ask.words.terms, ask.plain) == (("edit", "cold", "email"), text)
