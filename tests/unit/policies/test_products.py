"""Products that a request names."""

import pytest

from mats.domain.policies.policy import Ask
from mats.domain.policies.products import Found, Products, asked_names, products_named
from mats.domain.profile.index_keys import names
from mats.domain.search.candidate import Candidate, Elsewhere, Marks
from mats.domain.search.lookups import NameUse
from mats.domain.search.namespaces import nearest_spaces
from mats.domain.search.query import Filter, Query
from mats.domain.search.verdict import Verdict
from tests.builders import SCORING, a_profile, rank
from tests.world import discover_over, indexed

RARE = NameUse(owned=3, elsewhere=0, spaces={"com.linear"}, trusted=set())


@pytest.mark.parametrize(
    ("namespace", "provider", "expected"),
    [
        ("com.stripe.mcp", "Stripe, Inc.", {"stripe", "stripe inc"}),
        ("io.github.someone.google-maps-mcp-server", "", {"googl map"}),
        ("com.acme.api", "x" * 61, {"acm"}),
    ],
)
def test_names_are_the_telling_labels_of_a_namespace_and_its_provider(namespace, provider, expected):
    assert names(namespace, provider) == expected


@pytest.mark.parametrize(
    ("text", "use", "rest"),
    [
        ("make a ticket in Linear", RARE, "make a ticket"),
        ("make a ticket in my linear", RARE, "make a ticket"),
        ("make a new Linear ticket", RARE, "make a new ticket"),
        ("list Linear tickets", RARE, "list tickets"),
        ("make a new linear ticket", RARE, "make a new ticket"),
        ("list the comments of a Linear ticket", RARE, "list the comments of a ticket"),
        ("list the comments of the Linear ticket", RARE, None),
        ("find it. Then close a Linear ticket", RARE, None),
        ("find out why a Linear ticket is late", RARE, None),
        ("make a Linear", RARE, None),
        ("Linear: make a ticket", RARE, "make a ticket"),
        ("linear", RARE, "linear"),
        ("Linear ticket", RARE, None),
        ("a ticket in Linear Algebra", RARE, None),
        ("a ticket in Linear", RARE._replace(elsewhere=12), "a ticket"),
        ("a ticket in linear", RARE._replace(elsewhere=12), None),
        ("see https://linear.app/x in Safari", RARE, None),
        ("an entry in a line", RARE, None),
    ],
)
def test_a_product_is_named_by_the_sentence_and_the_registry_and_the_rest_is_encoded(text, use, rest):
    known = {name: use for name in asked_names(text) if name == "linear"}
    named = products_named(text, known)
    assert (named.rest if named.spaces else None) == rest


def found(name: str, namespace: str, provider: str = "Linear") -> Candidate:
    return Candidate(profile=a_profile(namespace=namespace, name=name, provider=provider), bm25=0.5, cosine=0.5)


def test_what_belongs_is_ordered_higher_and_is_no_better_a_match_and_nothing_else_changes():
    own, twin, other = found("own", "com.linear"), found("twin", "com.linear.evil"), found("other", "com.a", "A")
    named = products_named("a ticket in Linear", {"linear": RARE._replace(trusted={"com.linear"})})
    ask = Ask.of("a ticket in Linear", Filter())
    shifted = Products().shift([own, twin, other], Found(named, {}, {}), ask, SCORING)
    assert [each.gain > 0 for each in shifted] == [True, False, False]
    results = {each.id: each for each in rank(shifted)}
    assert results[own.id].score > results[other.id].score
    assert {each.relevance for each in results.values()} == {results[other.id].relevance}
    assert named.within(Filter()).scope.exact_namespaces == {"com.linear"}


@pytest.mark.parametrize(("trusted", "gains"), [(set(), True), ({"com.linear"}, False)])
def test_what_says_that_it_is_for_the_product_gains_as_much_unless_its_owner_is_trusted(trusted, gains):
    profile = a_profile(namespace="com.a", name="sync", provider="A", description="Moves tickets to Linear.")
    named = products_named("a ticket in Linear", {"linear": RARE._replace(trusted=trusted)})
    shifted = Products().shift(
        [Candidate(profile=profile, bm25=0.5, cosine=0.5)], Found(named, {}, {}), Ask.of("", Filter()), SCORING
    )
    assert (shifted[0].gain > 0) is gains
    assert not named.is_for(a_profile(namespace="com.a", name="fit", provider="A", description="Bilinear fits."))


def test_where_everything_is_of_the_product_its_name_changes_nothing():
    index = indexed(*(a_profile(namespace="com.linear", name=name) for name in ("create_ticket", "list_users")))
    plain, named = (discover_over(index).answer(Query(query=text)) for text in ("list users", "list users in Linear"))
    assert [each.id for each in named.ranked] == [each.id for each in plain.ranked]
    assert named.verdict is plain.verdict


@pytest.mark.parametrize(
    ("wanted", "nearest"),
    [("com.stripe.*", ["com.stripe"]), ("com.git", ["com.github", "com.gitlab", "com.gitlab.mcp"]), ("nope.nope", [])],
)
def test_the_nearest_namespaces_share_a_spelling_or_a_word(wanted, nearest):
    known = ["com.stripe.mcp", "com.gitlab.mcp", "com.github", "org.x"]
    assert sorted(nearest_spaces(wanted, known)) == nearest


@pytest.mark.parametrize(
    ("text", "elsewhere"),
    [
        ("post a message in Zendesk", Elsewhere(("Zendesk",), True)),
        ("upload a file to dropbox", Elsewhere(("dropbox",), True)),
        ("move it from Dropbox to Google Drive", Elsewhere(("Dropbox", "Google Drive"), True)),
        ("Workday: list absences", Elsewhere(("Workday",), True)),
        ("Salesforce", Elsewhere(("Salesforce",), True)),
        ("A build failed. Tell the team in Zendesk.", Elsewhere(("Zendesk",), True)),
        ("a message in Microsoft Teams", Elsewhere(("Microsoft Teams",), True)),
        ("create a Trello card", Elsewhere(("Trello",), False)),
        ("track my FedEx package", Elsewhere(("FedEx",), False)),
        ("list the tickets in the Zendesk queue", Elsewhere(("Zendesk",), False)),
        ("post a message on Zendesk", Elsewhere(("Zendesk",), True)),
        ("use Zendesk to post a message", Elsewhere(("Zendesk",), True)),
        ("list cards in my Trello account", Elsewhere(("Trello",), True)),
        ("to our Zendesk workspace, post it", Elsewhere(("Zendesk",), True)),
        ("launch it on Zendesk before the others do", None),
        ("find a tutorial on Zendesk", None),
        ("start from Medium's page", None),
        ("a message in Microsoft Outlook", Elsewhere(("microsoft", "outlook"), True)),
        ("a sheet in Microsoft Excel", Elsewhere(("microsoft", "excel"), True)),
        ("make an Outlook appointment", Elsewhere(("outlook",), True)),
        ("list my workday meetings", None),
        ("Box the results", None),
        ("a Linear regression", None),
        ("the share price of Netflix", None),
        ("search news on Netflix", None),
        ("broadcast from Madison Square Garden", None),
        ("A build failed. A Zendesk article told me to set a path.", None),
        ("what is the weather in Berlin in May", None),
        ("read the tickets at https://zendesk.com/x", None),
    ],
)
def test_a_request_says_in_which_products_it_is_to_be_done(text, elsewhere):
    of_microsoft = RARE._replace(spaces={"com.microsoft.outlook"})
    uses = {"microsoft": of_microsoft, "outlook": of_microsoft, "excel": RARE}
    named = products_named(text, {name: uses[name] for name in asked_names(text) if name in uses})
    assert named.elsewhere == elsewhere


def test_the_name_of_an_absent_product_names_no_part_of_it():
    named = products_named("a message in microsoft teams", {"microsoft": RARE})
    assert not named.spaces
    assert named.elsewhere


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("create a ticket in my Linear account", "create a ticket"),
        ("in Linear, account balance of Ann", "account balance of Ann"),
        ("Linear: account list", "account list"),
    ],
)
def test_what_goes_with_a_name_is_left_out_with_it(text, rest):
    assert products_named(text, {"linear": RARE}).rest == rest


def test_another_product_that_is_here_is_enough_for_a_match():
    named = products_named("post from Zendesk in Linear", {"linear": RARE})
    assert named.spaces
    assert named.elsewhere == Elsewhere(("Zendesk",), False)


@pytest.mark.parametrize(
    ("namespace", "provider", "description", "verdict"),
    [
        ("org.a", "Slack", "Post a message to a channel.", Verdict.WEAK),
        ("org.a", "Slack", "Post a message to a channel, or in Google Chat.", Verdict.MATCH),
        ("org.a", "Slack", "Post a message to a channel: postGoogleChatMessage.", Verdict.MATCH),
        ("org.a", "Slack", "Post a message to a channel. Attach files of Google Chat.", Verdict.WEAK),
        ("org.a", "Google LLC", "Post a message to a channel of Chat.", Verdict.MATCH),
        ("org.a", "Google LLC", "Post a message to a channel of Mail.", Verdict.WEAK),
        ("org.googlechat-mcp", "", "Post a message to a channel.", Verdict.MATCH),
    ],
)
def test_what_is_in_another_product_than_was_named_is_no_match(namespace, provider, description, verdict):
    poster = a_profile(namespace=namespace, provider=provider, name="post_message", description=description)
    index = indexed(poster, a_profile(name="x"))
    answer = discover_over(index).answer(Query(query="post a message to a channel in Google Chat"))
    assert answer.verdict is verdict
    note = "nothing found here belongs to Google Chat, which the query names"
    assert (note in answer.notes) is (verdict is Verdict.WEAK)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("post a message to a channel in Linear", Verdict.WEAK),
        ("Linear: post a message to a channel", Verdict.WEAK),
        ("post a message to the Linear channel", Verdict.MATCH),
        ("post a message to a channel", Verdict.MATCH),
    ],
)
def test_what_another_product_has_is_no_match_in_one_that_has_other_things(text, verdict):
    poster = a_profile(namespace="com.slack", name="post_message", description="Post a message to a channel.")
    ticket = a_profile(namespace="com.linear", name="make_ticket", description="Make a ticket.")
    answer = discover_over(indexed(poster, ticket)).answer(Query(query=text))
    assert (answer.results[0].id, answer.verdict) == (poster.id, verdict)
    note = "the first result does not belong to linear, which the query names"
    assert (note in answer.notes) is (verdict is Verdict.WEAK)


def test_what_says_that_it_serves_a_product_that_is_here_is_a_match_there():
    text = "Post a message to a channel. Serves the channels of Linear, too."
    poster = a_profile(namespace="com.slack", name="post_message", description=text)
    ticket = a_profile(namespace="com.linear", name="make_ticket", description="Make a ticket.")
    answer = discover_over(indexed(poster, ticket)).answer(Query(query="post a message to a channel in Linear"))
    assert (answer.results[0].id, answer.verdict) == (poster.id, Verdict.MATCH)


def test_a_mention_makes_a_match_of_nothing_else():
    poster = a_profile(name="post_message", description="Post a message to a channel.")
    index = indexed(poster, a_profile(namespace="org.b", name="y", description="Works beside Zendesk."))
    answer = discover_over(index).answer(Query(query="post a message to a channel in Zendesk"))
    assert (answer.results[0].id, answer.verdict) == (poster.id, Verdict.WEAK)


def test_nothing_stays_nothing_in_a_product_that_is_not_here():
    index = indexed(a_profile(name="post_message"), a_profile(name="list_users"))
    assert discover_over(index).answer(Query(query="zebras in Zendesk")).verdict is Verdict.NONE


@pytest.mark.parametrize(
    "steps", [("post a message in Zendesk", "list users"), ("post a message", "post a message in Zendesk")]
)
def test_only_the_step_in_a_product_that_is_not_here_is_no_match(steps):
    index = indexed(a_profile(name="poster", description="Post a message."), a_profile(name="list_users"))
    answer = discover_over(index).answer(Query(queries=steps))
    expected = [Verdict.WEAK if "Zendesk" in step else Verdict.MATCH for step in steps]
    assert [part.verdict for part in answer.parts] == expected
    assert answer.verdict is Verdict.MATCH


def test_the_encoder_reads_the_request_without_the_product():
    class Names:
        def names(self, asked: object, admitted: object) -> dict[str, NameUse]:
            return {"linear": NameUse(owned=3, elsewhere=0, spaces={"app.linear"}, trusted=set())}

        def namespaces(self, admitted: object) -> set[str]:
            return {"app.linear", "com.other"}

    ask, named = Products().read(Ask.of("list the users in Linear", Filter()), Names())
    assert named.spaces == {"linear": {"app.linear"}}
    assert (ask.plain, ask.text) == ("list the users", "list the users in Linear")


@pytest.mark.parametrize(
    ("told", "scores", "first"),
    [
        (True, {}, "com.linear/make"),
        (False, {}, "com.other/make"),
        (True, {"com.other/make": 0.9, "com.linear/make": 0.9}, "com.linear/make"),
        (True, {"com.other/make": 0.9, "com.linear/make": 0.8}, "com.other/make"),
        (True, {"com.other/make": 0.9, "com.linear/make": 0.3}, "com.other/make"),
        (True, {"com.other/make": 0.9}, "com.other/make"),
    ],
)
def test_trust_puts_nothing_before_a_match_of_the_product_that_is_as_near(told, scores, first):
    rated = a_profile(namespace="com.other", name="make", trust=100)
    own = a_profile(namespace="com.linear", name="make", trust=10)
    elsewhere = Marks(elsewhere=Elsewhere(("linear",), told))
    candidates = [
        Candidate(profile=rated, bm25=0.9, cosine=0.9, marks=elsewhere),
        Candidate(profile=own, bm25=0.9, cosine=0.9),
    ]
    assert rank(candidates, scores, Products())[0].id == first
