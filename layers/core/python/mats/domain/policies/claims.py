"""Place copies behind their originals, and claimants of a provider behind those whom operators verified.

docs/decisions/0035, 0037.
"""

import re
import unicodedata
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice
from typing import ClassVar, TypeVar

from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.policies.policy import Policy
from mats.domain.profile.profile import DAY_S, Profile
from mats.domain.profile.wording import Wording
from mats.domain.search.candidate import Exactness, Result
from mats.domain.search.shortlist import Ranked, quote_id
from mats.domain.text.fence import skeleton
from mats.domain.text.spelling import distance
from mats.domain.text.words import split_identifier, word_set

K = TypeVar("K", bound=Hashable)
COPY = 0.75  # Word overlap from which on a text is a copy; near-duplicates may differ more
_COPIED = 60  # Descriptions of fewer characters may coincide under different names


@dataclass(frozen=True)
class Claims(Policy):
    """Copies and claimants stay in the answer, marked.

    Within a day nobody is the copy: who registers a text first may have taken it from where its owner published it.
    """

    name: ClassVar = "claims"
    unrated: int  # The trust of an unrated profile beside others, 0 to 100

    def arrange(self, ranked: Ranked) -> Ranked:
        results = {result.id: result for result in ranked.results}
        profiles = {id: result.candidate.profile for id, result in results.items()}
        twins = [result.candidate for result in ranked.results if result.candidate.marks.near]
        copied = copies([twin.profile for twin in twins], unrated=self.unrated)
        claimed = claims(profiles.values(), unrated=self.unrated)
        taught = {each.id for each in ranked.results if each.candidate.marks.exact is Exactness.TAUGHT}
        verified = {id: [profile.id for profile in others] for id, others in claimed.items() if id not in taught}
        active = {each.id for each in twins if each.profile.lifecycle is Lifecycle.ACTIVE}
        # an active candidate is ranked behind its active originals only, which makes no cycles
        before = {
            each.id: active.intersection(copied.get(each.id, ()) if each.id in active else each.marks.near)
            for each in twins
            if each.id not in taught
        }
        ordered = [
            self._add_warnings(results[id], [results[other] for other in copied.get(id, ())], claimed.get(id, ()))
            for id in apply_precedence(list(results), verified, before)
        ]
        return ranked.with_results(ordered, *_notes_on_copies(results, copied, self.unrated))

    def _add_warnings(self, result: Result, originals: Sequence[Result], verified: Sequence[Profile]) -> Result:
        """The result with what speaks against it; who was first says nothing about whose text it is."""
        trust = result.candidate.profile.trust_or(self.unrated)
        rated = [each.id for each in originals if each.candidate.profile.trust_or(self.unrated) > trust]
        reasons = [f"has the description of {original}, nearly word for word" for original in rated[:1]]
        reasons += [claim_reason(other) for other in verified[:1]]
        return replace(result, suspicious=(*result.suspicious, *reasons)) if reasons else result


def _notes_on_copies(results: Mapping[Id, Result], copied: Mapping[Id, Sequence[Id]], unrated: int) -> list[str]:
    """A note on the first two with one text of which only the age tells whose it is."""
    trust = {id: result.candidate.profile.trust_or(unrated) for id, result in results.items()}
    alike = ((copy, other) for copy, others in copied.items() for other in others if trust[copy] == trust[other])
    return [
        f"{quote_id(copy)} and {quote_id(original)} have nearly one description, and operators rated neither higher"
        for copy, original in islice(alike, 1)
    ]


def apply_precedence(order: Sequence[K], *rules: Mapping[K, Collection[K]]) -> list[K]:
    """The order with each key moved directly behind the last of its predecessors, if it is not behind them already.

    The order has each key once, and a rule the predecessors of a key; those that are not in the order are ignored. The
    other keys keep their order. Where rules contradict each other, the earlier rule applies; the keys of a cycle are
    placed in their order.
    """
    if not any(rules):
        return list(order)
    waiting = dict.fromkeys(order)
    placed: list[K] = []
    while waiting:
        free = next(
            key
            for count in range(len(rules), -1, -1)
            for key in waiting
            if all(waiting.keys().isdisjoint(rule.get(key, ())) for rule in rules[:count])
        )
        del waiting[free]
        placed.append(free)
    return placed


_GENERIC = word_set(
    skeleton(
        "ab ag api apis as bv by co com company corp corporation dev from gmbh group holding holdings hq http https "
        "inc incorporated int international io kg limited llc llp ltd mcp net nv official org oy platform plc pte pty "
        "sa sas server servers spa srl support team the verified www"
    )
)
"""Legal forms, ends of host names, and what else makes no other provider of a name."""
_WORD = re.compile(r"\w+")
_INITIAL = re.compile(r"\b(\w)\.(?=\w\b)")  # Of an abbreviation such as L.L.C
_CACHED = 4_096


@lru_cache(maxsize=_CACHED)
def provider_key(name: str) -> str:
    """A key that names people take for one provider share: `Stripe`, `STRIPE, Inc.`, `stripe.com`, `Ѕtripe™`."""
    plain = "".join(" " if _is_sign(c) else c for c in name)
    words = _WORD.findall(skeleton(split_identifier(_INITIAL.sub(r"\1", plain))))
    return "".join([word for word in words if word not in _GENERIC] or words)


def _is_sign(character: str) -> bool:
    """True if a character is a symbol such as `™` or `+`, and no letter in a circle or box, such as `Ⓢ`."""
    if not unicodedata.category(character).startswith("S"):
        return False
    seen = skeleton(character)
    return character.isascii() or len(seen) != 1 or not seen.isalpha()


def claims(profiles: Iterable[Profile], *, unrated: int = 50) -> Mapping[Id, tuple[Profile, ...]]:
    """The profiles that look like one of an operator's choice among them, each with those that it looks like.

    They have, or resemble, the provider that is verified for the other, or its namespace, if that is rated or verified.
    """
    known = list(profiles)
    chosen = [each for each in known if each.provider_verified or each.trust_or(unrated) > unrated]
    found = {
        each.id: tuple(other for other in chosen if _looks_like(each, other, rated=each.trust_or(unrated) > unrated))
        for each in known
        if not each.provider_verified
    }
    return {id: others for id, others in found.items() if others}


def _looks_like(one: Profile, other: Profile, *, rated: bool) -> bool:
    if other.provider_verified and resembles(one.provider, other.provider):
        return True
    if rated or one.namespace == other.namespace:
        return False
    ours, theirs = (each.namespace.split(".")[:2] for each in (one, other))
    keys = [namespace_key(other.namespace), provider_key(other.provider) if other.provider_verified else ""]
    return ours != theirs and namespace_key(one.namespace) in filter(None, keys)


_HOSTS = re.compile(r"\bio\.git(?:hub|lab)\.")


@lru_cache(maxsize=_CACHED)
def namespace_key(namespace: str) -> str:
    """A key that namespaces share which people take for one: `com.stripe`, `com.str1pe-mcp`, `io.github.stripe`."""
    try:
        shown = namespace.encode().decode("idna")
    except UnicodeError:
        shown = namespace
    return provider_key(re.sub(r"[.-]", " ", _HOSTS.sub("", shown)))


_SHORTEST, _AROUND = 5, 3
"""Letters of a provider's name that others may resemble, and how many others may stand before it, as in `getstripe`."""


def resembles(name: str, known: str) -> bool:
    """Whether a provider's name is taken for a known one: the same, that and more words, or a letter or two beside."""
    key, theirs = provider_key(name) if name else "", provider_key(known)
    if key == theirs or len(theirs) < _SHORTEST:
        return key == theirs
    more = name and theirs == provider_key(" ".join(split_identifier(name).split()[: len(known.split())]))
    around = key.endswith(theirs) and len(key) - len(theirs) <= _AROUND
    return bool(more) or around or distance(key, theirs, 1) <= 1


def claim_reason(verified: Profile) -> str:
    """Why a capability that looks like this one is suspicious."""
    if verified.provider_verified:
        return f"claims the provider {verified.provider}, which is verified for the namespace {verified.namespace}"
    return f"has a namespace like {verified.namespace}, which is rated"


def copies(profiles: Sequence[Profile], *, unrated: int) -> Mapping[Id, Sequence[Id]]:
    """The profiles with the text of others in other namespaces that come before them, with these in the order given.

    Those with more trust come before, or of equal trust those registered earlier, unless within a day. `profiles`
    has each id once.
    """
    originals: dict[Id, list[Id]] = {}
    for one, other in combinations(profiles, 2):
        if one.namespace != other.namespace and _have_one_text(one, other):
            for copy, original in ((one, other), (other, one)):
                if _precedes(original, copy, unrated):
                    originals.setdefault(copy.id, []).append(original.id)
    return originals


def _have_one_text(one: Profile, other: Profile) -> bool:
    """Whether two texts are too near for a coincidence."""
    wording, others = Wording.of(one), Wording.of(other)
    if skeleton(one.name) == skeleton(other.name) and wording.is_near(others, COPY):
        return True
    long = all(each.source and len(each.source.description) >= _COPIED for each in (one, other))
    return long and wording.describes_the_same(others, COPY)


def _precedes(original: Profile, copy: Profile, unrated: int) -> bool:
    if (trust := original.trust_or(unrated)) != (other := copy.trust_or(unrated)):
        return trust > other
    return copy.registered_s - original.registered_s > DAY_S  # not of two without a time, whose difference is none
