"""Copies of a description under another namespace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.learning.reliability import PAPER_TRUST
from mats.domain.profile.profile import Profile
from mats.domain.trust.precedence import copies
from tests.builders import a_profile

DESCRIPTION = "Gives money back to the card it came from, within the hour, in every currency that banks know."
EARLY, LATE = "2026-01-01T00:00:00+00:00", "2026-03-01T00:00:00Z"
COPIES = {
    "word for word": DESCRIPTION,
    "case and spaces": f"  {DESCRIPTION.upper()} ",
    "a word more": f"{DESCRIPTION} Fast.",
    "a word less": DESCRIPTION.replace(" every", ""),
    "another order": "Within the hour, in every currency that banks know, gives money back to the card it came from.",
    "zero-width": DESCRIPTION.replace("a", "a\u200b"),
    "a space inside a word": DESCRIPTION.replace("money", "mo ney"),
    "Cyrillic letters": DESCRIPTION.replace("e", "\u0435").replace("o", "\u043e"),
    "Greek letters": DESCRIPTION.replace("v", "\u03bd").replace("o", "\u03bf"),
    "full width": "".join(chr(ord(c) + 0xFEE0) if c.isalpha() else c for c in DESCRIPTION),
    "a capital I for l": DESCRIPTION.replace("l", "I"),
    "accents": DESCRIPTION.replace("e", "\u00e9"),
    "soft hyphens": DESCRIPTION.replace("urr", "ur\u00adr"),
}


def profile(namespace: str, description: str = DESCRIPTION, *, since: str = EARLY, **others) -> Profile:
    made = a_profile(**{"namespace": namespace, "description": description, **others})
    return made.model_copy(update={"first_registered": since})


def copied(*profiles: Profile, unrated: int = 50) -> set[str]:
    return {id.partition("/")[0] for id in copies(profiles, unrated=unrated)}


@pytest.mark.parametrize("description", COPIES.values(), ids=COPIES)
def test_a_later_copy_is_flagged_and_its_original_is_not(description: str):
    original, copy = profile("com.a"), profile("com.b", description, since=LATE, name="another_name")
    assert copies([copy, original], unrated=50) == {copy.id: [original.id]}


def test_trust_tells_the_original_from_the_copy_before_age_does():
    assert copied(profile("com.old"), profile("com.new", since=LATE, trust=80)) == {"com.old"}
    assert copied(profile("com.old"), profile("com.new", since=LATE, trust=40)) == {"com.new"}
    assert copied(profile("com.old", trust=20), profile("com.new", since=LATE), unrated=PAPER_TRUST.unrated_trust) == {
        "com.old"
    }


def test_of_one_import_only_twins_of_one_name_are_flagged_and_then_both():
    assert copied(profile("com.a"), profile("com.b", name="other")) == set()
    assert copied(profile("com.a"), profile("com.b", name="Refund_Payment")) == {"com.a", "com.b"}


def test_a_profile_without_a_time_counts_as_older():
    assert copied(profile("com.a", since=""), profile("com.b")) == {"com.b"}


@pytest.mark.parametrize(
    "other",
    [
        profile("com.a", since=LATE, name="other"),
        profile("com.b", "Refunds.", since=LATE, name="other"),
        profile("com.b", "Takes money from an account, within the week, in any currency that it knows.", since=LATE),
    ],
    ids=["the same namespace", "a short description", "another description"],
)  # fmt: skip
def test_what_is_no_copy_is_not_flagged(other: Profile):
    assert copied(profile("com.a"), other) == set()


def test_short_descriptions_are_copies_under_the_same_name_only():
    assert copied(profile("com.a", "Refunds."), profile("com.b", "Refunds.", since=LATE, name="other")) == set()
    assert copied(profile("com.a", "Refunds."), profile("com.b", "Refunds.", since=LATE)) == {"com.b"}
    assert copied(profile("com.a", "Refunds."), profile("com.b", "Refunds.")) == set()


@given(
    st.lists(
        st.builds(
            profile,
            st.sampled_from(["com.a", "com.b", "com.c"]),
            st.sampled_from([DESCRIPTION, f"{DESCRIPTION} Fast.", DESCRIPTION[::-1], "Refunds.", ""]),
            name=st.sampled_from("xyz"),
            since=st.sampled_from(["", EARLY, LATE]),
            trust=st.sampled_from([None, 20, 80]),
        ),
        unique_by=lambda each: each.id,
        max_size=6,
    ),
    st.data(),
)
def test_originals_are_of_other_namespaces_and_as_trusted_in_any_order(profiles, data):
    found = copies(profiles, unrated=50)
    by_id = {each.id: each for each in profiles}
    for id, originals in found.items():
        assert all(by_id[each].namespace != by_id[id].namespace for each in originals)
        assert all((by_id[each].trust or 50) >= (by_id[id].trust or 50) for each in originals)
    again = copies(data.draw(st.permutations(profiles)), unrated=50)
    assert {id: set(originals) for id, originals in again.items()} == {id: set(each) for id, each in found.items()}
