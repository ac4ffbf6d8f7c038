"""The candidates as a reranker reads them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.bootstrap import models
from mats.domain.capability.capability import Kind
from mats.domain.profile.profile import Enrichment
from mats.domain.prompts.rerank_prompt import (
    CARD_TOKENS,
    card,
    cards,
    field_text,
    new_clauses,
    tokens,
    truncate,
    without_stock_phrases,
)
from mats.domain.text.fence import is_hidden, size
from mats.domain.text.words import stems
from tests.builders import a_profile, an_earlier_profile


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("Use this skill when the user wants to plan a trip.", "plan a trip."),
        ("When the user wants to plan a trip. Also use when the user mentions hotels.", "plan a trip. hotels."),
        ("This tool allows you to search the web.", "search the web."),
        ("This API endpoint will return a list. It can be used to sort.", "return a list. sort."),
        ("This skill should be used when the user asks to draw.", "draw."),
        ("- Use this agent when you need to review code", "review code"),
        ("Can you please help me to find a flight", "find a flight"),
        *(
            (unchanged, unchanged)
            for unchanged in (
                "Do not use this skill when the user wants to plan a trip.",
                "Never use when you need to delete a file.",
                "Refunds a card. Not for users who want to pay.",
                "A payment tool that allows users to refund",
                "Use when working with Kubernetes",
                "Use this tool, not the other one",
                "Wiederholt, was this tool allows you to do",
            )
        ),
    ],
)
def test_only_openings_that_say_nothing_are_left_out(text, short):
    assert without_stock_phrases(text) == short


@given(st.text(max_size=200))
def test_words_are_only_ever_left_out(text):
    rest = iter(text)
    assert all(character in rest for character in without_stock_phrases(text))


def test_only_clauses_that_add_words_are_kept():
    summary = "Refunds a card payment to the customer."
    action = "Refund the card payment, in part or whole, to customers; sends a receipt by mail."
    assert new_clauses(action, stems(summary)) == "in part or whole, sends a receipt by mail."
    assert new_clauses("Sends mail. Sends mail!", ()) == "Sends mail."
    assert new_clauses("", ("refund",)) == ""
    assert new_clauses("取引を返金する。領収書を送る", ()) == "取引を返金する。 領収書を送る"


@given(st.text(alphabet=st.characters() | st.sampled_from("<>＜﹥&＆|¦│｜║⎢￤ㅣ︱⁞⦀⦙⫼╽⸽ˌ‹›⟨⟩❮❯≺≻《︾\n")))
def test_a_field_has_no_brackets_bars_or_line_breaks_in_any_of_their_forms(text):
    field = field_text(text)
    assert not set(unicodedata.normalize("NFKC", field)) & set("<>&|¦│║⎢⁞⦀⦙⫼╽⸽ˌ‹›⟨⟩❮❯≺≻《》")
    assert len(field.splitlines()) <= 1
    assert not any(map(is_hidden, field))
    assert field_text(field) == field


@given(st.text(max_size=300), st.integers(-5, 200))
def test_a_truncated_field_is_within_its_limit_and_a_prefix(text, room):
    text = field_text(text)
    fit = truncate(text, room)
    assert tokens(fit) <= max(0, room)
    assert text.startswith(fit.removesuffix("…"))
    assert fit == text or tokens(text) > room


def test_a_field_is_cut_between_words_unless_that_wastes_half_of_it():
    assert truncate("refund a payment to the card", 7) == "refund a…"
    assert truncate("a " + "x" * 90, 20) == "a…"
    assert truncate("a " + "!" * 90, 20) == "a " + "!" * 16 + "…"


@given(st.text(max_size=200))
def test_a_text_has_no_more_tokens_than_bytes_nor_fewer_than_other_characters(text):
    assert tokens(text) <= size(text)
    assert tokens(text) >= sum(not c.isspace() and not (c.isascii() and c.isalnum()) for c in text)


def test_tokens_are_at_least_those_of_a_tokenizer_that_knows_few_words():
    counts = {"refund": 2, "refunds a card, in part": 7, "getUserById": 4, "HTTP 2026": 4, "日本": 6, "": 0}
    assert {text: tokens(text) for text in counts} == counts


FIVE = Enrichment(
    summary="Gives money back.",
    action="Reverses a charge, which gives the money back.",
    keywords=("money", "refund", "charge back", "chargeback " * 9, "card"),
    positive_examples=("return what an order cost",),
    negative_examples=(f"list earlier refunds, {'which another tool does better ' * 3}", "list refunds"),
)


def fields(line):
    """The fields of a card by label, in order; `name` has number, kind and name."""
    head, *rest = line.split(" | ")
    return {"name": head} | dict(field.split(" ", 1) for field in rest)


def test_the_candidates_are_numbered_from_one_in_the_order_given():
    shown = cards([a_profile(name=f"tool-{n}") for n in range(15)]).split("\n")
    assert [fields(line)["name"] for line in shown] == [f"{n + 1} tool tool-{n}" for n in range(15)]


def test_a_card_shows_the_five_fields_of_an_enriched_profile():
    assert fields(card(1, a_profile(enrichment=FIVE, provider="Acme", type_tags=["payments", "cards"]))) == {
        "name": "1 tool refund_payment",
        "type": "payments, cards",
        "by": "Acme",
        "does": "Gives money back. Reverses a charge",
        "for": "return what an order cost",
        "not": "list refunds",
        "keywords": "card",
    }


def test_the_card_of_a_raw_profile_has_description_and_inputs():
    schema = {"properties": {"charge_id": {"description": "as shown on the invoice"}}}
    assert fields(card(1, a_profile(input_schema=schema))) == {
        "name": "1 tool refund_payment",
        "does": "Gives money back to the card it came from.",
        "takes": "charge_id",
    }


def test_what_a_writer_wrote_reaches_the_reranker_at_the_lengths_it_is_asked_for():
    written = Enrichment(
        summary=" ".join(["reimburses cardholders"] * 20),
        action="Returns a payment.",
        keywords=("chargeback", "dispute"),
        positive_examples=("give a customer their money back for a duplicate charge",),
        negative_examples=("list the earlier refunds of an account: a reporting tool",),
    )
    schema = {"properties": {name: {} for name in ("charge_id", "amountInCents", "reason")}}
    shown = fields(card(1, a_profile(enrichment=written, input_schema=schema)))
    assert shown["does"] == written.summary
    assert (shown["for"], shown["not"]) == (*written.positive_examples, *written.negative_examples)
    assert (shown["keywords"], shown["takes"]) == ("chargeback, dispute", "charge_id, amountInCents, reason")


def test_the_description_of_an_agent_leaves_room_for_its_skills():
    skills = [{"name": "Trip planning", "description": "Plans a journey."}]
    shown = fields(card(1, a_profile(kind="agent", description="refunding " * 99, descriptor={"skills": skills})))
    assert shown["does"].endswith("…")
    assert shown["info"] == "Trip planning: Plans a journey."


def test_the_inputs_of_an_earlier_release_are_words():
    profile = a_profile(input_schema={"properties": {"charge_id": {}, "max": {}}})
    source = profile.source.model_copy(update={"identifiers": ""})
    assert fields(card(1, profile.model_copy(update={"source": source})))["takes"] == "charge id max"


def test_the_values_of_a_model_stand_before_its_description_and_its_keys_nowhere():
    facts = {"domain": "Language", "functionality": "Table Question Answering", "api_call": "load()"}
    for kind in ("model", "tool"):  # some registries file models as tools
        shown = fields(
            card(1, a_profile(kind=kind, description="TAPAS " * 99, provider="Hub", descriptor={"parameters": facts}))
        )
        assert list(shown) == ["name", "info", "does"]  # and no provider
        assert shown["info"] == "Language Table Question Answering load()"


def test_inputs_that_the_description_names_are_not_repeated():
    schema = {"properties": {"city": {"description": "The city"}}}
    shown = fields(card(1, a_profile(name="weather", description="Forecast for a city.", input_schema=schema)))
    assert list(shown) == ["name", "does"]


@given(st.lists(st.text("ab not", min_size=1, max_size=120), max_size=4), st.integers(0, 200))
def test_a_request_that_is_not_served_is_shown_whole_or_not_at_all(negatives, length):
    enrichment = Enrichment(summary="x" * length or "x", negative_examples=tuple(negatives))
    shown = fields(card(1, a_profile(enrichment=enrichment))).get("not")
    assert shown is None or shown in [" ".join(negative.split()) for negative in negatives]


def test_words_are_not_cut():
    profile = a_profile(provider="Hugging Face Transformers and some more", description="refunding " * 99)
    shown = fields(card(1, profile))
    assert shown["by"] == "Hugging Face…"
    assert set(shown["does"].rstrip("…").split()) == {"refunding"}


def test_the_kind_stands_before_the_name_and_an_invisible_name_still_leaves_a_card():
    for kind in Kind:
        assert fields(card(7, an_earlier_profile(kind=kind.value, name="\u200b\u200b")))["name"] == f"7 {kind} ?"


words_of_strangers = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=60)


@given(words_of_strangers, words_of_strangers, words_of_strangers, st.integers(0, 3))
def test_no_text_changes_another_card_or_displaces_its_own_name(name, text, tag, place):
    quiet = [a_profile(name=f"tool-{n}") for n in range(4)]
    raw = a_profile(description=text * 9, examples=[f"x{text}"])
    loud = raw.model_copy(update={"name": name, "type_tags": (tag,) * 9, "provider": tag})
    before = cards(quiet).split("\n")
    after = cards([*quiet[:place], loud, *quiet[place + 1 :]]).split("\n")
    assert [line for n, line in enumerate(after) if n != place] == [n for i, n in enumerate(before) if i != place]
    assert len(after[place].splitlines()) == 1
    number, kind, shown = fields(after[place])["name"].split(" ", 2)
    assert (number, kind) == (str(place + 1), "tool")
    assert shown.strip()
    assert tokens(after[place]) <= CARD_TOKENS


def test_only_the_form_with_a_type_asks_for_it():
    prompt = models.prompt("rerank")
    with_type = prompt.variant("with_type")
    forms = (prompt, with_type)
    assert [list(p.tool["schema"]["properties"]) for p in forms] == [["s"], ["t", "s"]]
    assert [p.tool["schema"]["required"] for p in forms] == [["s"], ["t", "s"]]
    assert ['"t"' in p.parts["plain"] for p in forms] == [False, True]
    assert (with_type.hash, with_type.system, with_type.request) == (prompt.hash, prompt.system, prompt.request)


def test_the_system_prompt_explains_every_label_of_a_card():
    legend = models.prompt("rerank").system
    assert all(label in legend for label in ("by (", "type", "does", "for (", "not (", "keywords", "takes (", "info"))


def test_secrets_of_a_candidate_do_not_leave():
    secret = "sk-live-4f9Qz81LmN0pR7sT2uVw"
    line = card(1, a_profile(description=f"Pays with {secret}", examples=[f"pay with {secret}"], tags=[f"{secret} x"]))
    assert secret not in line
    assert "{secret}" in line
