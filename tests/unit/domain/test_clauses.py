"""Cutting a request at its clauses."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.ranking.clauses import MOST, cut_at_clauses
from mats.domain.ranking.query import with_implied_step

SEVERAL = (
    "convert 100 euros to dollars[ and then ]send the result to my accountant",
    "refund a card payment[, and then ]turn a street address into coordinates",
    "Find a flight to Rome[, ]book a hotel near the station[, and ]rent a car.",
    "What is the weather in Oslo?[ Also, ]tell me when the sun sets there.",
    "1. Download the invoice[\n2. ]Extract the total amount[\n3. ]Pay the supplier",
    "Check the stock of part 7[; ]order a replacement[; ]notify the warehouse",
    "I need the latest match scores[ as well as ]the league table",
    "Translate the letter into French.[ After that, please ]mail it to Anna Berg.",
    "I run a small shop. Can you list unpaid invoices?[ Additionally, ]I would like to remind those customers.",
    "open an issue about the failing build.[ Then ]assign it to me.",
    "Which services are down?[ ]Show their logs[ and ]draw a chart of the last hour",
)
"""Requests with what connects their parts in brackets."""
ONE = (
    "refund a customer's card payment",
    "search and replace text in files",
    "Who attended the last meeting of the board? Please provide a list.",
    "Find products by their names, and then get me the details",
    "find a tool that reads and summarizes PDF files",
    "find order numbers and list prices of books",
    "Book a hotel, which has a swimming pool",
    "I am organizing a conference. Can you find a venue for 300 guests?",
    "send the message 'call me, and then book a table' to Bob",
    'find the page titled "Read, write and execute permissions"',
    "run `sort data.txt; then print the lines` in a shell",
    "open https://example.com/find,and/then;get?a=1 in a browser",
    "look up the film Find Me and Catch the Thief",
    "compute the mean (then round it, and print the result) of 3 numbers",
    "add 1,000, 2,500 and 3,700",
    "If it rains tomorrow, cancel my tennis lesson",
    "Suche einen Flug nach Rom und buche dann ein Hotel; danach miete ein Auto.",
    "Busca un vuelo a Roma y después reserva un hotel. También alquila un coche.",
    "查询天气，然后预订酒店，并且发送邮件给我",
    "",
    "and then",
)


@pytest.mark.parametrize("marked", SEVERAL)
def test_a_request_for_several_things_is_cut_at_its_clauses(marked):
    request = marked.replace("[", "").replace("]", "")
    assert cut_at_clauses(request) == tuple(re.split(r"\[[^]]*\]", marked))


@pytest.mark.parametrize("request_", ONE)
def test_a_request_for_one_thing_or_in_another_language_stays_whole(request_):
    assert cut_at_clauses(request_) == (request_.strip(),)


def test_what_exceeds_the_most_parts_stays_with_the_last():
    steps = [f"find the price of item {n}" for n in range(10)]
    parts = cut_at_clauses("; ".join(steps))
    assert parts[: MOST - 1] == tuple(steps[: MOST - 1])
    assert parts[MOST - 1] == "; ".join(steps[MOST - 1 :])


PIECES = st.sampled_from(
    [
        "find a flight to Rome", "Book the hotel room", "what is the time in Oslo", "I need a rental car", "it rains",
        "Buche ein Hotel", "the", "Anna", "'quoted, and then find it'", "(see the list; get one)", "3.5", "然后", " ",
        "https://a.example/x,y", ", and then ", " and ", ", ", ". ", "; ", "\n2. ", "? Also, ", " as well as ", "。",
        " plus ", "\n- ",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=200))
CONNECTING = re.compile(
    r"(?:\s|[,;\"'”’)\]*•-]|\(?\d{1,2}[.)]|please|kindly|also|then|next|finally|lastly|first(?:ly)?|second(?:ly)?|"
    r"third(?:ly)?|additionally|furthermore|moreover|besides|that|in|addition|after(?:wards?)?|and|but|as|well|plus)*",
    re.IGNORECASE,
)


@given(TEXTS)
def test_parts_and_what_connects_them_give_back_the_text(text):
    parts = cut_at_clauses(text)
    assert 1 <= len(parts) <= MOST
    place = 0
    for part in parts:
        start = text.index(part, place)
        assert CONNECTING.fullmatch(text[place:start])
        place = start + len(part)
    assert not text[place:].strip()


@pytest.mark.parametrize("text", ["\n" * 2_000, ", and " * 333, "(" * 2_000, "' " * 1_000, "then " * 400, " " * 2_000])
def test_any_text_is_read_in_one_pass(text):
    assert len(cut_at_clauses(text)) == 1


@pytest.mark.parametrize(("request_", "implied"), [
    ("Write a summary of the meeting to notes/2026-05.md", True), ("save the table as `out.csv`, please", True),
    ("put the totals into ~/work/totals.json", True), ("which lines differ in a.txt and b.txt?", False),
    ("save the picture under shots/one.png", False), ("Read /var/log/app.log. Create a ticket.", False),
    ("write to ada@example.com about README", False), ("make a list", False),
])  # fmt: skip
def test_a_text_that_goes_into_a_file_implies_the_step_of_writing_it(request_, implied):
    assert with_implied_step(request_, (request_,)) == ((request_, "write a file") if implied else (request_,))
    assert len(with_implied_step(request_, ("a step",) * MOST)) == MOST
