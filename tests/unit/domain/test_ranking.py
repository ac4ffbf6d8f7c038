"""The score of a candidate, and the order of all."""

from dataclasses import replace
from itertools import combinations, pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.policies.claims import Claims, copies
from mats.domain.policies.lessons import Lessons
from mats.domain.search.blend import PAPER_TRUST, Scoring, TrustRule, best_relevance
from mats.domain.search.candidate import Candidate, Exactness, Marks, Result
from mats.domain.search.scale import LEXICAL_SHARE, Scale, best_first, fuse
from mats.domain.search.shortlist import Steps, name_alternates, take_in_turn
from mats.domain.search.signals import PAPER_WEIGHTS, Signal
from tests.builders import a_profile, rank


def test_each_list_gives_its_next_item_that_is_not_taken():
    assert take_in_turn([["a", "b", "c"], ["a", "d"], ["b", "e", "f"]]) == ["a", "d", "b", "c", "e", "f"]


SCALE = Scale(c=0.5, lo=0.0, hi=1.0)

candidates = st.lists(
    st.builds(
        lambda name, trust, lifecycle: Candidate(
            profile=a_profile(name=name, trust=trust, lifecycle=lifecycle), bm25=None, cosine=None
        ),
        st.text("abc", min_size=1, max_size=3),
        st.sampled_from([0, 25, 50, 100]),
        st.sampled_from(Lifecycle),
    ),
    unique_by=lambda candidate: candidate.profile.id,
    max_size=8,
)
some_scores = st.dictionaries(st.integers(0, 7), st.sampled_from([0.0, 0.5, 1.0]))


PROPORTIONAL = TrustRule(prior=50, proportional=True)


CLAIMS, LESSONS = Claims(50), Lessons(lambda query_id: {})


def ranked(candidates, scores=None, trust=PROPORTIONAL) -> tuple[Result, ...]:
    scoring = Scoring(scale=SCALE, weights=PAPER_WEIGHTS, trust=trust)
    return rank(candidates, scores or {}, CLAIMS, LESSONS, scoring=scoring)


def scores_of(candidates, scores) -> dict:
    return {candidates[n].profile.id: score for n, score in scores.items() if n < len(candidates)}


def ids(results) -> list[str]:
    return [result.id for result in results]


def precedes(one: Result, other: Result) -> bool:
    ours, theirs = one.candidate.profile, other.candidate.profile
    if (Signal.LLM in one.signals) is not (Signal.LLM in other.signals):
        return Signal.LLM in one.signals
    if one.score != other.score:
        return one.score > other.score
    if ours.lifecycle is not theirs.lifecycle:
        return ours.lifecycle is Lifecycle.ACTIVE
    return ours.id < theirs.id


def test_what_an_operator_taught_is_first_whatever_the_reranker_and_trust_say():
    lesson = Candidate(profile=a_profile(name="z", trust=0), bm25=0.0, cosine=0.0, marks=Marks(exact=Exactness.TAUGHT))
    others = [Candidate(profile=a_profile(name=name, trust=100), bm25=9.0, cosine=1.0) for name in "ab"]
    found = ranked(
        [replace(others[0], marks=Marks(exact=Exactness.ID)), others[1], lesson], {c.id: 1.0 for c in others}
    )
    assert found[0].id == lesson.id
    assert found[0].relevance >= 0.7


@given(candidates, some_scores)
def test_the_order_is_total_and_loses_no_candidate(candidates, scores):
    ordered = ranked(candidates, scores_of(candidates, scores))
    assert sorted(ids(ordered)) == sorted(candidate.profile.id for candidate in candidates)
    assert all(precedes(one, other) for one, other in pairwise(ordered))


@given(candidates, some_scores, st.data())
def test_a_deprecated_twin_never_stands_above_an_active_one_and_no_other_moves(candidates, scores, data):
    plain = ranked(candidates, known := scores_of(candidates, scores))
    group = {id: data.draw(st.sampled_from("ab")) for id in ids(plain)}
    twins = [
        replace(each, marks=Marks(near=frozenset(id for id in group if id != own and group[id] == group[own])))
        for each in candidates
        for own in [each.profile.id]
    ]
    ordered = ranked(twins, known)
    active = {each.profile.id for each in candidates if each.profile.lifecycle is Lifecycle.ACTIVE}
    for above, below in combinations(ids(ordered), 2):
        assert above in active or below not in active or group[above] != group[below]
    moved = {
        one
        for one, other in combinations(ids(plain), 2)
        if one not in active and other in active and group[one] == group[other]
    }
    assert [id for id in ids(ordered) if id not in moved] == [id for id in ids(plain) if id not in moved]
    for id in moved:
        above = [other for other in ids(ordered)[: ids(ordered).index(id)] if other not in moved]
        assert group[above[-1]] == group[id]


def test_a_near_duplicate_left_out_is_named_once_by_the_best_of_its_group():
    best, worse = (
        Candidate(profile=a_profile(name=name, trust=trust), bm25=None, cosine=None, marks=Marks(near=frozenset(near)))
        for name, trust, near in (
            ("best", 90, {Id("com.acme.pay/worse"), Id("a/x")}),
            ("worse", 50, {Id("com.acme.pay/best"), Id("a/x"), Id("b/y")}),
        )
    )
    assert [result.alternates for result in name_alternates(ranked([worse, best]))] == [("a/x",), ("b/y",)]


TWINS = st.lists(
    st.builds(
        lambda n, trust, lifecycle, day, name, text: Candidate(
            profile=a_profile(
                namespace=f"n{n}", name=name, description=f"{LONG} {text}", trust=trust, lifecycle=lifecycle
            ).model_copy(update={"first_registered": day}),
            bm25=None,
            cosine=None,
            marks=Marks(near=frozenset(Id(f"n{m}/{other}") for m in range(9) for other in ("x", "y"))),
        ),
        st.integers(0, 8),
        st.sampled_from([None, 25, 50, 100]),
        st.sampled_from(Lifecycle),
        st.sampled_from(["", "2026-01-01T00:00:00Z", "2026-01-01T23:00:00Z", "2026-01-04T00:00:00Z"]),
        st.sampled_from(["x", "y"]),
        st.sampled_from(["", "Fast.", "Cheap and good."]),
    ),
    unique_by=lambda candidate: candidate.profile.namespace,
    max_size=8,
)
LONG = "Gives money back to the card it came from, within the hour, in every currency that banks know."


@given(TWINS, some_scores)
def test_a_copy_never_stands_above_an_original_of_its_lifecycle_and_none_is_lost(candidates, scores):
    ordered = ranked(candidates, scores_of(candidates, scores))
    assert sorted(ids(ordered)) == sorted(candidate.profile.id for candidate in candidates)
    originals = copies([candidate.profile for candidate in candidates], unrated=50)
    lifecycles = {candidate.profile.id: candidate.profile.lifecycle for candidate in candidates}
    for above, below in combinations(ids(ordered), 2):
        if lifecycles[above] is lifecycles[below] is Lifecycle.ACTIVE and below in originals.get(above, ()):
            assert above in originals[below]
        assert (lifecycles[above], lifecycles[below]) != (Lifecycle.DEPRECATED, Lifecycle.ACTIVE)


@pytest.mark.parametrize(
    ("llm", "bm25", "trust", "tags", "expected"),
    [
        (None, None, None, (), 0.0),
        (None, None, 80, (), 0.80),
        (0.9, 1.0, None, (), (0.50 * 0.9 + 0.05 * (1 / 1.5)) / 0.55),
        (0.9, 1.0, 40, (), (0.50 * 0.9 + 0.05 * (1 / 1.5) + 0.30 * 0.4) / 0.85),
        (0.9, 1.0, 40, ("pay",), 0.50 * 0.9 + 0.05 * (1 / 1.5) + 0.30 * 0.4 + 0.15 * 1.0),
        (0.9, 1.0, 40, ("other",), 0.50 * 0.9 + 0.05 * (1 / 1.5) + 0.30 * 0.4 + 0.15 * 0.0),
    ],
)
def test_the_score_is_the_weighted_mean_of_the_signals_that_are_there(llm, bm25, trust, tags, expected):
    profile = a_profile(trust=trust, type_tags=tags)
    candidate = Candidate(profile=profile, bm25=bm25, cosine=None)
    scores = {} if llm is None else {profile.id: llm}
    scoring = Scoring(scale=SCALE, weights=PAPER_WEIGHTS, trust=PAPER_TRUST)
    [result] = rank([candidate], scores, scoring=scoring, intent="pay" if tags else None)
    assert result.score == pytest.approx(expected)


def of_provider(namespace: str, provider: str, *, verified: str = "", trust: int | None = None) -> Candidate:
    profile = a_profile(namespace=namespace, name="refund", provider=provider, verified=verified, trust=trust)
    return Candidate(profile=profile, bm25=None, cosine=None)


def test_who_claims_a_verified_provider_stands_directly_below_it_and_is_flagged():
    stripe, mcp = (of_provider(place, "", verified="Stripe") for place in ("com.stripe", "com.stripe.mcp"))
    evil = of_provider("evil.example", "Strіpe, Inc.", trust=100)
    honest, last = of_provider("com.square", "Square"), of_provider("com.last", "")
    scored = (evil, 1), (honest, 0.9), (stripe, 0.8), (mcp, 0.5), (last, 0)
    scores = {candidate.profile.id: score for candidate, score in scored}
    results = ranked([evil, stripe, honest, mcp, last], scores)
    assert ids(results) == [each.profile.id for each in (honest, stripe, mcp, evil, last)]
    claim = "claims the provider Stripe, which is verified for the namespace com.stripe"
    assert [result.suspicious for result in results] == [(), (), (), (claim,), ()]


@given(
    st.lists(
        st.builds(of_provider, st.sampled_from(["a", "b", "c", "d", "e"]), st.sampled_from(["Stripe", "Acme", ""]),
                  verified=st.sampled_from(["Stripe", "Acme", ""]), trust=st.sampled_from([None, 0, 100])),
        unique_by=lambda candidate: candidate.profile.id, max_size=5,
    ),
    st.dictionaries(st.integers(0, 4), st.sampled_from([0.0, 0.5, 1.0])),
)  # fmt: skip
def test_no_claimed_provider_ever_stands_above_the_verified_one(some: list[Candidate], scores):
    results = ranked(some, scores_of(some, scores))
    for place, result in enumerate(results):
        one = result.candidate.profile
        below = [each.candidate.profile for each in results[place + 1 :]]
        assert one.provider_verified or not [
            each for each in below if each.provider_verified and each.provider == one.provider
        ]


@pytest.mark.parametrize(
    ("rule", "share", "expected"),
    [(PROPORTIONAL, 0.8, 0.40), (PROPORTIONAL, None, None), (PAPER_TRUST, 0.8, 0.80), (PAPER_TRUST, None, None)],
)
def test_quality_of_half_a_relevance(rule, share, expected):
    assert rule.quality(share, 0.5) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("rule", "trusts", "expected"),
    [
        (PROPORTIONAL, [None, None], None),  # nobody takes the prior where nobody is rated
        (PROPORTIONAL, [None, 0], 0.25),
        (PAPER_TRUST, [None, 0], None),
    ],
)
def test_the_unrated_take_the_prior_beside_a_rated_one(rule, trusts, expected):
    profiles = [a_profile(name=f"{n:02}", trust=trust) for n, trust in enumerate(trusts)]
    candidates = [Candidate(profile=profile, bm25=None, cosine=None) for profile in profiles]
    [unrated, _] = ranked(candidates, {profile.id: 0.5 for profile in profiles}, rule)
    assert unrated.signals.get(Signal.QUALITY) == expected


@given(st.lists(st.tuples(st.integers(0, 100), st.floats(0, 1)), min_size=2, max_size=6))
def test_more_trust_and_more_relevance_is_never_below(given):
    profiles = [a_profile(name=f"{n:02}", trust=trust) for n, (trust, _) in enumerate(given)]
    scores = {profile.id: relevance for profile, (_, relevance) in zip(profiles, given, strict=True)}
    order = ids(ranked([Candidate(profile=profile, bm25=None, cosine=None) for profile in profiles], scores))
    for one, other in product(profiles, repeat=2):
        if one.trust > other.trust and scores[one.id] - scores[other.id] > 1e-9:
            assert order.index(one.id) < order.index(other.id)


@pytest.mark.parametrize(("prior", "unrated"), [(0, 0), (30, 30), (None, 50)])
def test_the_unrated_have_the_prior_or_50_beside_near_duplicates(prior, unrated):
    assert TrustRule(prior=prior, proportional=True).unrated_trust == unrated


def test_a_reply_that_was_cut_off_is_judged_by_what_it_scored():
    scored, unscored = (Candidate(profile=a_profile(name=name), bm25=9.0, cosine=1.0) for name in "ab")
    found = ranked([scored, unscored], {scored.id: 0.3})
    assert [each.id for each in found] == [scored.id, unscored.id]
    assert found[1].relevance > 0.9
    assert best_relevance(found) == 0.3


def test_what_was_asked_for_by_name_has_a_least_relevance():
    [named] = ranked([Candidate(profile=a_profile(), bm25=None, cosine=0.0, least=0.7)])
    assert named.relevance == named.signals[Signal.RETRIEVAL] > 0.7


def test_the_best_by_words_comes_before_the_best_by_meaning():
    words, meaning = {Id("n/words"): 9.0, Id("n/other"): 1.0}, {Id("n/meaning"): 0.9, Id("n/other"): 0.1}
    assert best_first(fuse(words, meaning, lexical_share=LEXICAL_SHARE))[:2] == ["n/words", "n/meaning"]


def test_three_pairs_of_words_add_a_fifth_of_what_is_missing():
    assert Scale(c=1.0, lo=0.0, hi=1.0).mix(1.0, 0.5, pairs=3) == pytest.approx(0.5 + 0.5 * 0.4 / 2)


def test_the_steps_take_turns_in_the_order_of_their_best():
    cosines = {"a": 0.6, "b": 0.5, "c": 0.4}
    best, second, third = ranked(
        [Candidate(profile=a_profile(name=name), bm25=None, cosine=cosine) for name, cosine in cosines.items()]
    )
    served = {best.id: [1], second.id: [1], third.id: [0]}
    steps = Steps(texts=["one", "two"], served=served, answered=[True, True])
    assert ids(steps.in_turn([best, second, third])) == [best.id, third.id, second.id]
