"""Contract of the port `SearchIndex`."""

from dataclasses import replace

import pytest

from mats.domain.capability.capability import Kind
from mats.domain.profile.index_keys import day_keys, fold, name_key
from mats.domain.profile.profile import Status
from mats.domain.search.lookups import NameUse
from mats.domain.search.query import Filter, Query, Scope
from mats.domain.text.words import query_terms, stem
from mats.ports import SearchIndex, Stored
from tests.builders import a_profile
from tests.fakes import FakeEncoder

ENCODER = FakeEncoder()
EVERYTHING = Filter()


def entry(name: str, description: str = "", *, rev: int = 1, encoded: bool = True, **about) -> Stored:
    made_by = ENCODER.name if encoded else ""
    profile = a_profile(name=name, description=description, **about).model_copy(update={"rev": rev, "encoder": made_by})
    return Stored(profile, ENCODER.encode_query(f"{name} {description}") if encoded else None)


def tombstone(name: str, *, rev: int) -> Stored:
    return Stored(a_profile(name=name).model_copy(update={"status": Status.DELETED, "source": None, "rev": rev}))


def names(ids) -> list[str]:
    return [id.rpartition("/")[2] for id in ids]


def lexical(index: SearchIndex, *terms: str, depth: int = 10, admitted: Filter = EVERYTHING) -> list[str]:
    return names(index.lexical(terms, admitted, depth=depth))


def neural(index: SearchIndex, text: str, *, depth: int = 10, admitted: Filter = EVERYTHING) -> list[str]:
    return names(index.neural(ENCODER.encode_query(text), admitted, depth=depth))


def test_a_clear_winner_comes_first_on_both_sides(index: SearchIndex):
    index.put(
        [entry("refund", "give money back"), entry("geocode", "address to coordinates"), entry("mail", "send mail")]
    )
    assert lexical(index, "address", "coordinates")[0] == "geocode"
    assert neural(index, "address coordinates")[0] == "geocode"


def test_words_are_found_by_their_stem_in_split_names_in_titles_and_within_text_without_spaces(index: SearchIndex):
    index.put(
        [
            entry("createRefund_v2", "x"),
            entry("op-1", "x", descriptor={"summary": "File a claim"}),
            entry("pay", "x", negative_examples=("cancel a subscription",)),  # which are no evidence
            entry("cancel", "x"),
            entry("weather", "查询天气预报"),
            entry("tenki", "東京の天気を教えて"),
            entry("nalssi", "날씨를 알려줘"),
            entry("mail", "发送电子邮件"),
        ]
    )
    for query, found in (
        ("refunds", ["createRefund_v2"]),
        ("created", ["createRefund_v2"]),
        ("claims", ["op-1"]),
        ("cancel subscription", ["cancel"]),
        ("天气", ["weather"]),
        ("明天的天气怎么样", ["weather"]),
        ("天気を教えて", ["tenki"]),
        ("날씨", ["nalssi"]),
        ("地图", []),
    ):
        assert lexical(index, *query_terms(query)) == found, query


def test_names_and_namespaces_are_those_that_the_caller_sees(index: SearchIndex):
    index.put(
        [
            entry("a", namespace="com.stripe.mcp", trust=80),
            entry("b", namespace="com.stripe.mcp.eu", description="maps of google"),
            entry("c", namespace="org.google-maps", provider="Acme, Inc.", descriptor={"summary": "pays by Stripe"}),
            entry("d", namespace="com.stripe.secret", visible_to=("ops",)),
            entry("e", namespace="com.other", description="google alone"),
            tombstone("gone", rev=1),
        ]
    )
    ops = Filter(audiences=frozenset({"ops"}))
    asked = ["stripe", "googl map", "acm inc", "com", "googl", "alon"]
    assert index.names(asked, EVERYTHING) == {
        "stripe": NameUse(2, 1, {"com.stripe.mcp", "com.stripe.mcp.eu"}, {"com.stripe.mcp"}),
        "googl map": NameUse(1, 1, {"org.google-maps"}, set()),
        "acm inc": NameUse(1, 0, {"org.google-maps"}, set()),
    }
    assert index.names(["stripe"], ops)["stripe"].spaces == {"com.stripe.mcp", "com.stripe.mcp.eu", "com.stripe.secret"}
    assert index.names([], EVERYTHING) == {}
    assert set(index.namespaces(EVERYTHING)) == {"com.stripe.mcp", "com.stripe.mcp.eu", "org.google-maps", "com.other"}
    assert set(index.namespaces(ops)) - set(index.namespaces(EVERYTHING)) == {"com.stripe.secret"}
    owned = Filter(scope=Scope(keys=frozenset({name_key("stripe")})))
    assert sorted(names(index.neural(ENCODER.encode_query("x"), owned, depth=9))) == ["a", "b"]


def test_what_was_registered_on_some_days_is_left_out(index: SearchIndex):
    made = {"old": "2026-01-02", "new": "2026-03-04", "unknown": ""}
    entries = [entry(name, "send mail", visible_to=("ops",) if name == "old" else None) for name in made]
    index.put(
        [
            replace(each, profile=each.profile.model_copy(update={"first_registered": made[each.profile.name]}))
            for each in entries
        ]
    )
    ops = Filter(audiences=frozenset({"ops"}))
    before = replace(ops, scope=Scope(without_keys=frozenset(day_keys(["2026-03-04", "2026-03-05"]))))
    assert sorted(lexical(index, "mail", admitted=before)) == ["old", "unknown"]
    assert sorted(neural(index, "mail", admitted=before)) == ["old", "unknown"]
    assert index.count(before) == 2
    assert index.count(replace(before, audiences=frozenset())) == 1
    assert index.count(replace(before, kinds=frozenset({Kind.SKILL}))) == 0


def test_a_word_that_no_entry_has_is_taken_for_the_nearest_that_the_caller_sees(index: SearchIndex):
    index.put(
        [
            entry("a", "open a pull request of the database"),
            entry("b", "request, requests"),
            entry("c", "oven and workflow of an address"),
            entry("hidden", "a secretword, opne", visible_to=("ops",)),
            tombstone("gone", rev=1),
        ]
    )

    def meant(*words: str, admitted: Filter = EVERYTHING) -> dict[str, str]:
        return {word: stem(near) for word, near in index.spellings(words, admitted).items()}

    assert meant("opne", "requets", "workflwo", "databsae", "addres") == {
        "opne": "open", "requets": "request", "workflwo": "workflow", "databsae": stem("database"), "addres": "address",
    }  # fmt: skip
    assert meant("request", "requesting", "wrxkfolx", "penguin", "secretwrod") == {}
    ops = Filter(audiences=frozenset({"ops"}))
    assert meant("secretwrod", admitted=ops) == {"secretwrod": "secretword"}
    assert meant("opne", admitted=ops) == {}
    assert meant("workflow", "addres", admitted=Filter(namespaces=frozenset({"com.else"}))) == {}
    assert meant() == {}


def test_equal_scores_are_ordered_by_id_at_any_depth(index: SearchIndex):
    vector = ENCODER.encode_query("same")
    index.put([Stored(entry(name, "same words").profile, vector) for name in ("d", "b", "c", "a")])
    for depth in (2, 10):
        assert lexical(index, "same", depth=depth) == neural(index, "same", depth=depth) == list("abcd")[:depth]


def test_an_entry_without_a_vector_is_found_by_words_only(index: SearchIndex):
    index.put([entry("plain", "words", encoded=False)])
    assert lexical(index, "words") == ["plain"]
    assert neural(index, "words") == []
    assert index.cosine_of(ENCODER.encode_query("words"), [entry("plain").profile.id]) == {}


def test_a_vector_of_another_encoder_is_compared_with_none(index: SearchIndex):
    ours, theirs = entry("ours", "words"), entry("theirs", "words")
    index.put([ours, replace(theirs, profile=theirs.profile.model_copy(update={"encoder": "another"}))])
    assert neural(index, "words") == ["ours"]
    assert sorted(lexical(index, "words")) == ["ours", "theirs"]


def test_a_newer_revision_replaces_text_vector_and_attributes(index: SearchIndex):
    index.put([entry("tool", "old words")])
    index.put([entry("tool", "new phrases", rev=2, tags=("fresh",))])
    assert lexical(index, "old") == []
    assert lexical(index, "new", admitted=Filter(tags=frozenset({"fresh"}))) == ["tool"]
    assert neural(index, "new phrases", admitted=Filter(tags=frozenset({"fresh"}))) == ["tool"]


def test_an_older_or_equal_revision_changes_nothing(index: SearchIndex):
    index.put([entry("tool", "right", rev=2)])
    for rev in (1, 2):
        index.put([entry("tool", "wrong", rev=rev)])
        assert lexical(index, "wrong") == []
        assert lexical(index, "right") == ["tool"]


def test_a_tombstone_is_found_nowhere_and_still_guards_against_older_revisions(index: SearchIndex):
    index.put([entry("tool", "words")])
    index.put([tombstone("tool", rev=2)])
    index.put([entry("tool", "words", rev=1)])
    id = entry("tool").profile.id
    assert lexical(index, "words") == []
    assert neural(index, "words") == []
    assert index.fetch([id]) == {}
    assert index.bm25_of(["words"], [id]) == {}
    assert index.revisions([id]) == {id: 2}


def test_a_capability_comes_back_after_its_tombstone(index: SearchIndex):
    index.put([entry("tool", "words"), tombstone("tool", rev=2), entry("tool", "words", rev=3)])
    assert lexical(index, "words") == ["tool"]
    assert neural(index, "words") == ["tool"]


def test_purging_forgets_tombstones_and_nothing_that_is_findable(index: SearchIndex):
    index.put([entry("live", "words"), tombstone("gone", rev=1)])
    index.purge([entry("live").profile.id, entry("gone").profile.id])
    assert list(index.ids()) == [entry("live").profile.id]
    assert index.revisions([entry("live").profile.id, entry("gone").profile.id]) == {entry("live").profile.id: 1}


def test_ids_are_listed_in_order_tombstones_included_from_any_of_them_on(index: SearchIndex):
    index.put([entry("c"), entry("a"), tombstone("b", rev=1)])
    ids = [entry(name).profile.id for name in "abc"]
    assert list(index.ids()) == ids
    assert list(index.ids(after=ids[0])) == ids[1:]
    assert list(index.ids(after=ids[2])) == []
    assert index.revisions([]) == {}


def test_a_purged_id_is_free_for_any_revision(index: SearchIndex):
    index.put([entry("tool", "words", rev=7), tombstone("tool", rev=8)])
    index.purge([entry("tool").profile.id])
    index.put([entry("tool", "words")])
    assert lexical(index, "words") == ["tool"]


def test_names_and_words_of_any_length_are_indexed(index: SearchIndex):
    index.put([entry("𝕬" * 200, "words " + "x" * 40_000), entry("b" * 200, "words " + "支付" * 20_000)])
    assert set(lexical(index, "words")) == {"𝕬" * 200, "b" * 200}
    assert len(index.fetch(list(index.lexical(["words"], EVERYTHING, depth=5)))) == 2


def test_filters_hold_on_both_sides(index: SearchIndex):
    index.put(
        [
            entry("tool", "words", kind=Kind.TOOL, namespace="com.acme.pay", tags=("a", "b")),
            entry("agent", "words", kind=Kind.AGENT, namespace="com.acme", tags=("a",)),
            entry("secret", "words", kind=Kind.TOOL, namespace="com.acmepay", visible_to=("finance",)),
        ]
    )
    cases = [
        (Filter(), {"tool", "agent"}),
        (Filter(kinds=frozenset({Kind.TOOL})), {"tool"}),
        (Filter(namespaces=frozenset({"com.acme"})), {"tool", "agent"}),
        (Filter(namespaces=frozenset({"com.acme.pay"})), {"tool"}),
        (Filter(tags=frozenset({"a", "b"})), {"tool"}),
        (Filter(audiences=frozenset({"finance"})), {"tool", "agent", "secret"}),
        (Filter(kinds=frozenset({Kind.MODEL})), set()),
    ]
    for admitted, expected in cases:
        assert set(lexical(index, "words", admitted=admitted)) == expected
        assert set(neural(index, "words", admitted=admitted)) == expected


def test_a_scope_names_exact_namespaces_and_choices_of_tags_on_both_sides(index: SearchIndex):
    index.put(
        [
            entry("a", "words", namespace="com.acme", tags=("x",)),
            entry("b", "words", namespace="com.acme.pay", tags=("y", "z")),
            entry("c", "words", namespace="com.acme-b", tags=()),
        ]
    )
    cases = [
        (Scope(), {"a", "b", "c"}),
        (Scope(exact_namespaces=frozenset({"com.acme"})), {"a"}),
        (Scope(exact_namespaces=frozenset({"com.acme", "com.acme-b"})), {"a", "c"}),
        (Scope(exact_namespaces=frozenset({"com"})), set()),
        (Scope(tag_choices=frozenset({frozenset({"x", "y"})})), {"a", "b"}),
        (Scope(tag_choices=frozenset({frozenset({"x", "y"}), frozenset({"z"})})), {"b"}),
        (Scope(exact_namespaces=frozenset({"com.acme"}), tag_choices=frozenset({frozenset({"y"})})), set()),
    ]
    for scope, expected in cases:
        assert set(lexical(index, "words", admitted=Filter(scope=scope))) == expected
        assert set(neural(index, "words", admitted=Filter(scope=scope))) == expected
        assert {id.rpartition("/")[2] for id in index.page(Filter(scope=scope), after=None, limit=9)} == expected


def test_effects_are_found_on_both_sides(index: SearchIndex):
    def said(**hints: bool) -> dict[str, object]:
        return {"descriptor": {"annotations": hints}}

    deletes = entry("deletes", "words", visible_to=("finance",), **said(destructiveHint=True))
    index.put([entry("reads", "words", **said(readOnlyHint=True)), entry("silent", "words"), deletes])
    ops = frozenset({"finance"})
    cases = [
        ([], {"reads", "silent", "deletes"}),
        (["read-only"], {"reads"}),
        (["read-only", "destructive"], {"reads", "deletes"}),
        (["non-destructive"], set()),
    ]
    for effects, expected in cases:
        admitted = Filter.of(Query.parse({"query": "words", "effects": effects}), ops)
        assert set(lexical(index, "words", admitted=admitted)) == expected
        assert set(neural(index, "words", admitted=admitted)) == expected


def test_pages_list_admitted_ids_in_order(index: SearchIndex):
    spelt = ["Z", "a", "b/c", "b", "é", "支付", "𝕬", "\uff5e", "secret"]
    index.put(
        [entry(name, encoded=False, visible_to=("finance",) if name == "secret" else None) for name in spelt]
        + [tombstone("gone", rev=1)]
    )
    hidden = entry("secret").profile.id
    for audiences, ids in (((), set()), (("finance",), {hidden})):
        admitted = Filter(audiences=frozenset(audiences))
        everything = sorted({entry(name).profile.id for name in spelt} - {hidden} | ids)
        found, after = [], None
        while page := index.page(admitted, after=after, limit=2):
            assert len(page) <= 2
            found.extend(page)
            after = page[-1]
        assert found == everything
    assert index.page(Filter(), after="zzz", limit=1) == []


def test_scores_of_ids_equal_those_of_the_search_and_are_zero_for_others(index: SearchIndex):
    index.put([entry("a", "red blue"), entry("b", "red"), entry("c", "green")])
    searched = dict(index.lexical(["red", "blue"], Filter(), depth=10))
    ids = [entry(name).profile.id for name in "abc"]
    assert index.bm25_of(["red", "blue"], ids) == pytest.approx({**searched, ids[2]: 0.0})
    vector = ENCODER.encode_query("red")
    near = dict(index.neural(vector, Filter(), depth=10))
    assert index.cosine_of(vector, list(near)) == pytest.approx(near)


def test_without_terms_and_under_unknown_ids_nothing_is_found(index: SearchIndex):
    index.put([entry("a", "b")])
    id = entry("nobody").profile.id
    assert lexical(index) == []
    assert index.fetch([id]) == {}
    assert index.bm25_of(["x"], [id]) == {}
    assert index.cosine_of(ENCODER.encode_query("x"), [id]) == {}


OPERATORS = (
    "AND", "OR", "NOT", "NEAR", "and", "near", "*", "^", ":", "name", "-", "(", ")", "{", "+", "\u202e", "𝔘", "１２",
)  # fmt: skip


def test_words_that_are_operators_elsewhere_are_words(index: SearchIndex):
    index.put([entry("a", "nothing of the sort")])
    for term in OPERATORS:
        lexical(index, term)
        lexical(index, "sort", term)


def test_exact_keys_find_what_has_them_and_passes_the_filter(index: SearchIndex):
    index.put(
        [
            entry("issues/create", "x", descriptor={"summary": "Open an issue"}),
            entry("other", "open an issue, an issue to open"),
            entry("hidden", "x", descriptor={"summary": "Open an issue"}, visible_to=("ops",)),
            tombstone("gone", rev=1),
        ]
    )

    def exact(query: str, admitted: Filter = EVERYTHING, most: int = 10) -> list[str]:
        return sorted(id.partition("/")[2] for id in index.exact([f"={fold(query)}"], admitted, most=most))

    created = a_profile(name="issues/create")
    for query in ("Open the issues!", "issues create", created.id):
        assert exact(query) == ["issues/create"]
    assert exact("open issue", Filter(audiences=frozenset(["ops"]))) == ["hidden", "issues/create"]
    assert len(exact("open issue", Filter(audiences=frozenset(["ops"])), most=1)) == 1
    assert exact("open issue", Filter(namespaces=frozenset(["org.elsewhere"]))) == []
    assert exact("gone") == exact("opening of an issue") == exact("?!") == []
    assert lexical(index, "openissu") == []
    index.put(
        [entry("issues/create", "x", rev=2, descriptor={"summary": "Close an issue"}), tombstone("hidden", rev=2)]
    )
    assert exact("Open an issue") == []
    assert exact("close issue") == ["issues/create"]
    index.put([entry(f"issues/{n}", "x", descriptor={"summary": "Close an issue"}, trust=55 + n) for n in (4, 30)])
    assert [exact("close an issue", most=most) for most in (1, 2)] == [["issues/30"], ["issues/30", "issues/4"]]
    index.put([entry("issues/create", "x", rev=3, descriptor={"summary": "Close an issue"}, trust=100)])
    assert exact("close issue", most=1) == ["issues/create"]


def test_the_worth_of_words_hardly_depends_on_the_size_of_a_small_index(index: SearchIndex):
    first = entry("refund", "refund a card")
    index.put([first, entry("mail", "send mail to a card")])
    few = index.bm25_of(["refund", "card"], [first.profile.id])
    index.put([entry(f"other{n}", f"thing{n} for object{n}") for n in range(60)])
    assert index.bm25_of(["refund", "card"], [first.profile.id]) == pytest.approx(few, rel=0.2)
