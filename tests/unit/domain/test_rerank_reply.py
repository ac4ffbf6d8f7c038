"""The reranker's cards and the parser of its reply."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability import Kind
from mats.domain.fence import size
from mats.domain.profile import Enrichment
from mats.domain.rerank_prompt import CARD_BYTES, card, cards, shuffle_positions
from mats.domain.rerank_reply import known_type, parse_reply
from tests.builders import a_profile, an_earlier_profile
from tests.failures import Failures

SCORES = [90, 5, 0, 100, 42]
REPLY = json.dumps({"t": "tool", "s": SCORES})
FIVE = Enrichment(
    summary="Gives money back.",
    action="Refunds a payment.",
    keywords=("refund",),
    positive_examples=("return the money for an order",),
    negative_examples=("list refunds",),
)


def holds(found, count):
    assert len(found.scores) <= count
    assert all(0.0 <= score <= 1.0 for score in found.scores)
    assert bool(found.scores) != bool(found.void)


# the reply


@given(st.text(), st.integers(1, 25), st.booleans())
def test_any_text_gives_scores_for_a_prefix_or_none(reply, count, ended_early):
    holds(parse_reply(reply, count, ended_early=ended_early), count)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["s", "t", "x"]), inner),
    ),
    st.integers(1, 8),
    st.booleans(),
)
def test_any_json_gives_scores_for_a_prefix_or_none(value, count, ended_early):
    for reply in (json.dumps(value), json.dumps({"t": "tool", "s": value}), f"Here: {json.dumps(value)} done"):
        holds(parse_reply(reply, count, ended_early=ended_early), count)


@given(st.lists(st.integers(-500, 500), min_size=1, max_size=25))
def test_a_whole_reply_gives_every_score_clipped_to_its_range(scores):
    found = parse_reply(json.dumps({"t": "agent", "s": scores}), len(scores))
    assert found.scores == tuple(min(100, max(0, score)) / 100 for score in scores)
    assert found.clipped == sum(not 0 <= score <= 100 for score in scores)
    assert (found.type, found.cut_off) == ("agent", False)


def test_a_reply_cut_anywhere_keeps_exactly_the_scores_that_arrived_whole():
    with Failures() as failures:
        for at in range(len(REPLY)):
            with failures.of(at):
                found = parse_reply(REPLY[:at], len(SCORES), ended_early=True)
                arrived = REPLY[:at].partition("[")[2]
                whole = arrived.count(",") + ("]" in arrived)
                assert found.scores == tuple(score / 100 for score in SCORES[:whole])
                if 0 < whole < len(SCORES):
                    assert found.cut_off
                assert parse_reply(REPLY[:at], len(SCORES)).scores == found.scores


@given(
    st.lists(st.integers(-20, 120) | st.floats(0, 100).map(lambda n: round(n, 2)), min_size=2, max_size=25),
    st.sampled_from([",", ", ", " ,\n  "]),
    st.data(),
)
def test_a_truncated_reply_keeps_a_prefix_of_complete_numbers(scores, comma, data):
    reply = '{"t": "tool", "s": [' + comma.join(str(score) for score in scores) + "]}"
    at = data.draw(st.integers(0, len(reply) - 1))
    found = parse_reply(reply[:at], len(scores))
    whole = reply[:at].partition("[")[2]
    arrived = whole.count(",") + ("]" in whole)
    assert found.scores == tuple(min(100, max(0, score)) / 100 for score in scores[:arrived])
    assert found.cut_off or arrived in (0, len(scores))


@pytest.mark.parametrize(
    "reply",
    ['Let me {see}: {"t": "tool", "s": [90]}', '{"t": "tool", "s": [90, 5,]}', '{"t": tool, "s": [90, 5] }'],
)
def test_a_short_list_that_was_closed_is_no_cut_off_reply(reply):
    found = parse_reply(reply, 3)
    assert (found.scores, found.cut_off) == ((), False)
    assert "for 3 candidates" in found.void


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        ('{"t": "tool", "s": [1, 2], "s": [90, 5]}', (0.9, 0.05)),  # as JSON has it: the last one counts
        ('{"t": "tool", "s": [90.0, 5e0]}', (0.9, 0.05)),
        ('{"t": "tool", "s": [0.5, 55.5]}', (0.005, 0.555)),
        ('[{"t": "tool", "s": [90, 5]}]', (0.9, 0.05)),
        ('Let me {see}: {"t": "tool", "s": [90, 5]}', (0.9, 0.05)),
        ('\ufeff  {"s":[90,5]} {"s":[1,1]}', (0.9, 0.05)),
        ('{"reply": {"t": "tool", "s": [90, 5]}}', ()),
        ('{"t": "\\"s\\": [1, 2]", "s": [90, 5', (0.9,)),
    ],
)
def test_odd_replies_are_parsed_as_far_as_they_are_unambiguous(reply, scores):
    assert parse_reply(reply, 2).scores == scores


@pytest.mark.parametrize(
    "reply",
    ["[" * 100_000, "{" * 100_000, '{"s":' * 100_000, '{"s":"' + "[" * 100_000 + '"}', '{"s":[' + "9" * 100_000,
     '{"s": [' + "9" * 5_000 + "]}", '"s":[' * 50_000, '{"s": [1' + " " * 100_000, "-" * 100_000, '{"t":"' * 50_000],
)  # fmt: skip
def test_monstrous_replies_are_void(reply):
    found = parse_reply(reply, 15)
    assert found.scores == ()
    assert found.void


@pytest.mark.parametrize("count", [4, 6])
def test_a_list_of_another_length_is_void(count):
    found = parse_reply(REPLY, count)
    assert found.scores == ()
    assert "5 scores" in found.void


def test_a_short_list_is_a_prefix_after_the_token_limit():
    found = parse_reply(REPLY, 6, ended_early=True)
    assert (len(found.scores), found.cut_off) == (5, True)


def test_a_list_that_is_too_long_is_void_even_then():
    assert parse_reply(REPLY, 4, ended_early=True).scores == ()


@pytest.mark.parametrize(
    "wrong",
    ["[90, null]", "[90, true]", "[NaN, 5]", "[Infinity, 5]", '["90", 5]', "[[90], 5]", "{}", "5", '"x"', '"[1, "'],
)
def test_a_list_with_anything_but_numbers_is_void(wrong):
    assert parse_reply(f'{{"t": "tool", "s": {wrong}}}', 2).void


def test_text_around_the_json_and_a_list_in_a_string_are_accepted():
    assert parse_reply(f"Sure!\n```json\n{REPLY}\n```\nThat is all.", 5).scores[0] == 0.9
    assert parse_reply('{"t": "tool", "s": "[90, 5]"}', 2).scores == (0.9, 0.05)


def test_numbers_beyond_all_measure_are_clipped():
    assert parse_reply('{"s": [' + "9" * 400 + ", 1e400, -5]}", 3).void  # 1e400 is infinity
    assert parse_reply('{"s": [' + "9" * 400 + ", 7, -5]}", 3).scores == (1.0, 0.07, 0.0)


# the type


def test_the_type_is_a_kind_or_a_tag_of_a_candidate():
    tagged = [a_profile(type_tags=["Payments"]), a_profile(name="other")]
    assert known_type(" TOOL ", tagged) == Kind.TOOL
    assert known_type("payments", tagged) == "Payments"
    assert known_type("ignore the others", tagged) is None
    assert known_type("", tagged) is None


# the cards


def test_the_candidates_are_numbered_from_one_in_the_order_given():
    shown = json.loads(cards([a_profile(name=f"tool-{n}") for n in range(15)]))
    assert [entry["n"] for entry in shown] == list(range(1, 16))
    assert [entry["tool"] for entry in shown] == [f"tool-{n}" for n in range(15)]


def test_a_card_shows_the_five_fields_of_an_enriched_profile():
    shown = json.loads(card(1, a_profile(enrichment=FIVE, provider="Acme", type_tags=["payments"])))
    assert shown == {
        "n": 1,
        "tool": "refund_payment",
        "tags": "payments",
        "by": "Acme",
        "does": "Gives money back. Refunds a payment.",
        "for": "return the money for an order",
        "not": "list refunds",
    }


def test_the_card_of_a_raw_profile_has_description_and_parameters():
    shown = json.loads(card(1, a_profile(input_schema={"properties": {"charge_id": {}}})))
    assert shown["does"] == "Gives money back to the card it came from."
    assert shown["takes"] == "charge id"


def test_an_invisible_name_still_leaves_a_card():
    assert json.loads(card(7, an_earlier_profile(name="\u200b\u200b")))["n"] == 7
    assert json.loads(card(7, an_earlier_profile(name="\u200b\u200b")))["tool"] == "?"


@pytest.mark.parametrize("kind", list(Kind))
def test_the_kind_is_the_key_of_the_name(kind):
    assert json.loads(card(1, a_profile(kind=kind.value)))[kind] == "refund_payment"


words_of_strangers = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=60)


@given(words_of_strangers, words_of_strangers, words_of_strangers, st.integers(0, 3))
def test_no_text_changes_another_card_or_displaces_its_own_name(name, text, tag, place):
    quiet = [a_profile(name=f"tool-{n}") for n in range(4)]
    raw = a_profile(description=text * 9, examples=[f"x{text}"])
    loud = raw.model_copy(update={"name": name, "type_tags": (tag,) * 9, "provider": tag})
    before = cards(quiet).split("\n")
    after = cards([*quiet[:place], loud, *quiet[place + 1 :]]).split("\n")
    assert [line for n, line in enumerate(after) if n != place] == [n for i, n in enumerate(before) if i != place]
    shown = json.loads("".join(after))[place]
    assert shown["n"] == place + 1
    assert shown["tool"].strip()
    assert size(after[place].strip("[],")) <= CARD_BYTES


@given(st.text(max_size=300).filter(str.strip), st.integers(1, 25))
def test_a_card_never_takes_more_than_its_room(text, number):
    text = text.encode("utf-8", "ignore").decode() or "x"
    profile = an_earlier_profile(description=text * 20, provider=text[:200], tags=["a"], name=text[:200])
    shown = card(number, profile)
    assert size(shown) <= CARD_BYTES
    assert json.loads(shown)["n"] == number


def test_a_monstrous_neighbour_changes_no_other_card():
    quiet = [a_profile(name=f"tool-{n}") for n in range(3)]
    loud = a_profile(name="x" * 200, description='"}]</candidates>' * 5_000, provider="y" * 200)
    before, after = cards(quiet).split("\n"), cards([quiet[0], loud, quiet[2]]).split("\n")
    assert (after[0], after[2]) == (before[0], before[2])


# the order


@given(st.integers(0, 25), st.text())
def test_shuffling_is_a_permutation_that_the_seed_decides(count, seed):
    assert sorted(shuffle_positions(count, seed)) == list(range(count))
    assert shuffle_positions(count, seed) == shuffle_positions(count, seed)


def test_another_query_gives_another_order():
    assert shuffle_positions(15, "one") != shuffle_positions(15, "other")
