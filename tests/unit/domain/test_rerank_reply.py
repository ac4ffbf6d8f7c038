"""The parser of the reranker's reply."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import Kind
from mats.domain.prompts.rerank_reply import known_type, parse_reply
from tests.builders import a_profile
from tests.strategies import json_values

SCORES = [90, 5, 0, 100, 42]
REPLY = json.dumps({"t": "tool", "s": SCORES})


def tell_apart(scores):
    """Scores of which one is in range, and that are neither a ranking nor all equal and high."""
    if all(score != clip(score) for score in scores):
        return False
    return sorted(scores) != list(range(1, len(scores) + 1)) and (min(scores) < 50 or len({*map(clip, scores)}) > 1)


def clip(score):
    return min(100, max(0, score))


def holds(found, count):
    assert len(found.scores) <= count
    assert all(0.0 <= score <= 1.0 for score in found.scores)
    assert bool(found.scores) != bool(found.void)


@given(st.text(), st.integers(1, 25), st.booleans())
def test_any_text_gives_scores_for_a_prefix_or_none(reply, count, ended_early):
    holds(parse_reply(reply, count, ended_early=ended_early), count)


@given(json_values(keys=st.sampled_from(["s", "t", "x"])), st.integers(1, 8), st.booleans())
def test_any_json_gives_scores_for_a_prefix_or_none(value, count, ended_early):
    for reply in (json.dumps(value), json.dumps({"t": "tool", "s": value}), f"Here: {json.dumps(value)} done"):
        holds(parse_reply(reply, count, ended_early=ended_early), count)


@given(st.lists(st.integers(-500, 500), min_size=1, max_size=25).filter(tell_apart))
def test_a_whole_reply_gives_every_score_clipped_to_its_range(scores):
    found = parse_reply(json.dumps({"t": "agent", "s": scores}), len(scores))
    assert found.scores == tuple(clip(score) / 100 for score in scores)
    assert found.clipped == sum(not 0 <= score <= 100 for score in scores)
    assert (found.intent, found.cut_off) == ("agent", False)


@given(
    st.lists(st.integers(-20, 120) | st.floats(2, 100).map(lambda n: round(n, 2)), min_size=2, max_size=25),
    st.sampled_from([",", ", ", " ,\n  "]),
    st.data(),
)
def test_a_truncated_reply_keeps_a_prefix_of_complete_numbers(scores, comma, data):
    reply = '{"t": "tool", "s": [' + comma.join(str(score) for score in scores) + "]}"
    at = data.draw(st.integers(0, len(reply) - 1))
    found = parse_reply(reply[:at], len(scores))
    assert parse_reply(reply[:at], len(scores), ended_early=True).scores == found.scores
    whole = reply[:at].partition("[")[2]
    arrived = whole.count(",") + ("]" in whole)
    assert found.scores == tuple(clip(score) / 100 for score in scores[:arrived])
    assert found.cut_off or arrived in (0, len(scores))


@pytest.mark.parametrize(
    "reply", ['Let me {see}: {"t": "tool", "s": [90]}', '{"t": "tool", "s": [90, 5,]}', '{"t": tool, "s": [90, 5] }']
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
        ('{"t": "tool", "s": [5.5, 55.5]}', (0.055, 0.555)),
        ('Let me {see}: {"t": "tool", "s": [90, 5]}', (0.9, 0.05)),
        ('\ufeff  {"s":[90,5]} {"s":[1,1]}', (0.9, 0.05)),
        ('{"s": ["90", " 5 "]}', (0.9, 0.05)),
        ('Sure!\n```json\n{"t": "tool", "s": "[90, 5]"}\n```\nThat is all.', (0.9, 0.05)),
        ('{"scores": [90, 5', (0.9,)),
        ('[{"n": 2, "score": 5}, {"n": 1, "score": 90, "why": "it fits"}]', (0.9, 0.05)),
        ('{"s": [0.95, 0.1]}', (0.95, 0.1)),
        ('{"s": [1, 0.5]}', (1.0, 0.5)),
        ('{"s": [-0.5, 0.5]}', (0.0, 0.5)),
        ('{"s": [0.95, 0.', (0.95,)),
        ('{"s": [1, 0]}', (0.01, 0.0)),
        ('{"t": "\\"s\\": [1, 2]", "s": [90, 5', (0.9,)),
    ],
)
def test_odd_replies_are_parsed_as_far_as_they_are_unambiguous(reply, scores):
    assert parse_reply(reply, 2).scores == scores


@pytest.mark.parametrize("count", [4, 6])
def test_a_list_of_another_length_is_void(count):
    found = parse_reply(REPLY, count)
    assert found.scores == ()
    assert "5 scores" in found.void
    truncated = parse_reply(REPLY, count, ended_early=True)
    assert (len(truncated.scores), truncated.cut_off) == ((5, True) if count == 6 else (0, False))


@pytest.mark.parametrize("ranks", [[1, 2, 3, 4, 5], [5, 3, 1, 2, 4], list(range(15, 0, -1))])
def test_a_ranking_is_no_list_of_scores(ranks):
    assert parse_reply(json.dumps({"s": ranks}), len(ranks)).void
    assert parse_reply(json.dumps({"s": {str(n): rank for n, rank in enumerate(ranks, 1)}}), len(ranks)).void
    assert parse_reply(json.dumps({"s": [0, *ranks]}), len(ranks) + 1).scores


@pytest.mark.parametrize(
    ("scores", "void"),
    [
        ([999] * 15, True),
        ([80] * 5, True),
        ([101, 900], True),
        ([101, 90], False),
        ([10] * 15, False),
        ([0] * 5, False),
        ([90] * 4, False),
    ],
)
def test_equal_scores_say_that_nothing_fits_or_nothing_at_all(scores, void):
    assert bool(parse_reply(json.dumps({"s": scores}), len(scores)).void) is void


UNCERTAIN = [
    "[0.95, 40]", "[40, 0.5]", '["0.95", "40"]',  # 0.95 of 1 or of 100
    "[90, null]", "[90, true]", "[NaN, 5]", "[Infinity, 5]", '["ninety", 5]', "[[90], 5]", "{}", "5", '"x"',
    '"[1, "',
    '"90 5"', '["1e1", 5]', '{"1": 90}', '{"0": 90, "1": 5}', '{"1": 90, "2": 5, "3": 7}', '{"1": 90, "2": null}',
    '[{"n": 1, "score": 90}, {"n": 1, "score": 5}]', '[{"score": 90}, {"score": 5}]',
    '[{"n": 1, "number": 2, "score": 90}, {"n": 2, "score": 5}]', '[{"n": 1, "score": 90}, 5]',
    '[{"n": true, "score": 90}, {"n": 2, "score": 5}]',
]  # fmt: skip
ELSEWHERE = [
    "[90, 5]", '{"ranking": [2, 1]}', '{"a": {"s": [90, 5]}, "b": {"s": [5, 90]}}',
    '{"a": ' * 9 + '{"s": [90, 5]}' + "}" * 9,
]  # fmt: skip
MONSTROUS = [
    "[" * 100_000, "{" * 100_000, '{"s":' * 100_000, '{"s":"' + "[" * 100_000 + '"}', '{"s":[' + "9" * 100_000,
    '{"s": [' + "9" * 5_000 + "]}", '"s":[' * 50_000, '{"s": [1' + " " * 100_000, "-" * 100_000, '{"t":"' * 50_000,
]  # fmt: skip


@pytest.mark.parametrize("reply", [*(f'{{"t": "tool", "s": {each}}}' for each in UNCERTAIN), *ELSEWHERE, *MONSTROUS])
def test_scores_that_are_no_numbers_or_of_uncertain_candidates_are_void(reply):
    found = parse_reply(reply, 2)
    assert (found.scores, bool(found.void)) == ((), True)


FORMS = {
    "strings": lambda scores, order: {"s": [str(score) for score in scores]},
    "one string": lambda scores, order: {"s": ", ".join(map(str, scores))},
    "JSON in a string": lambda scores, order: {"s": json.dumps(scores)},
    "another key": lambda scores, order: {"t": "tool", "scores": scores},
    "wrapped": lambda scores, order: {"name": "judge", "input": {"t": "tool", "s": scores}},
    "in a list": lambda scores, order: [{"t": "tool", "s": scores}],
    "by number": lambda scores, order: {str(n + 1): scores[n] for n in order},
    "by number under s": lambda scores, order: {"t": "tool", "s": {str(n + 1): str(scores[n]) for n in order}},
    "entries": lambda scores, order: [{"n": n + 1, "score": scores[n]} for n in order],
    "entries under scores": lambda scores, order: {"scores": [{"number": str(n + 1), "s": scores[n]} for n in order]},
    "entries wrapped": lambda scores, order: {
        "judge": {"s": [{"candidate": n + 1, "score": scores[n]} for n in order]}
    },
}


@given(st.lists(st.integers(-20, 120), min_size=1, max_size=25).filter(tell_apart), st.randoms(use_true_random=False))
def test_every_form_in_any_order_has_the_scores_of_the_canonical_one(scores, random):
    order = random.sample(range(len(scores)), len(scores))
    canonical = parse_reply(json.dumps({"s": scores}), len(scores))
    for name, form in FORMS.items():
        found = parse_reply(json.dumps(form(scores, order)), len(scores))
        assert (found.scores, found.clipped, found.void) == (canonical.scores, canonical.clipped, ""), name


def test_numbers_beyond_all_measure_are_clipped():
    assert parse_reply('{"s": [' + "9" * 400 + ", 1e400, -5]}", 3).void  # 1e400 is infinity
    assert parse_reply('{"s": [' + "9" * 400 + ", 7, -5]}", 3).scores == (1.0, 0.07, 0.0)


def test_the_type_is_a_kind_or_a_tag_of_a_candidate():
    tagged = [a_profile(type_tags=["Payments"]), a_profile(name="other")]
    assert known_type(" TOOL ", tagged) == Kind.TOOL
    assert known_type("payments", tagged) == "Payments"
    assert known_type("ignore the others", tagged) is None
    assert known_type("", tagged) is None
