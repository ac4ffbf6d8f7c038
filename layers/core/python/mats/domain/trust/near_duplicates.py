"""Which of the found may be candidates: near-duplicates, echoes of a request, newcomers, and who had a text first.

Near-duplicates are compared by their owners' text only, however it is spelled: a writer describes two copies in
different words. Echoes repeat a request, as an attacker does who expects it; each may be padded with other words, but
must keep those of the request, and honest capabilities hold only some of these. A text is senior since its first
version, not the one before: otherwise an owner could turn an old registration into somebody else's, a few words at a
time. Of the first text only a sample is kept. docs/decisions/0035.

Newcomers are unrated and new beside older ones. Floods and stuffed texts are new: what was there before them has been
seen, and may have been used. docs/decisions/0095.
"""

import hashlib
import heapq
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice

from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.profile.index_fields import searched_text
from mats.domain.profile.profile import Profile, SourceText
from mats.domain.text.fence import skeleton
from mats.domain.text.words import content_words, may_have_stem, spelled_words, split_identifier, stem, words

LEAST = 0.5
"""Estimated word overlap with the first text, and with the first description, as long as nothing begins anew."""
_SAMPLED, _DIGITS = 32, 6  # Words of a sample, and hexadecimal digits of each word's hash
_CACHED_HASHES = 50_000  # Words whose hash is kept in memory, some 8 MB


def sample_text(profile: Profile) -> str:
    """Samples of the words of the description and of the whole text, with a colon between them."""
    wording = Wording.of(profile)
    return f"{_sample(wording.description)}:{_sample(wording.text)}"


def is_same_work(first: str, profile: Profile) -> bool:
    """True if both the description and the whole text still resemble those that were sampled first."""
    pairs = zip(first.split(":"), sample_text(profile).split(":"), strict=True)
    return all(_resemble(one, other) for one, other in pairs)


def _sample(words: Set[str]) -> str:
    """The smallest hashes of the words: equal words are equally likely to be in both of two samples."""
    return "".join(heapq.nsmallest(_SAMPLED, map(_hash, words)))


@lru_cache(maxsize=_CACHED_HASHES)
def _hash(word: str) -> str:
    return hashlib.blake2b(word.encode("utf-8", "replace")).hexdigest()[:_DIGITS]


def _resemble(one: str, other: str) -> bool:
    """True if the Jaccard similarity that two samples suggest is high enough; true for two empty ones."""
    ours, theirs = ({sample[n : n + _DIGITS] for n in range(0, len(sample), _DIGITS)} for sample in (one, other))
    union = sorted(ours | theirs)[:_SAMPLED]
    common = ours.intersection(theirs, union)
    return len(common) >= LEAST * len(union)


SHARE = 0.8  # Share of a request's content words from which on a profile repeats it
FEWEST = 4  # Content words; a shorter request may be a capability's own name
_PREFIX = 2  # Words that share a stem share at least these first letters


def find_echoes(request: str, profiles: Iterable[Profile]) -> list[int]:
    """The positions of the profiles that repeat the request, in any field and order; a short one as an example."""
    asked = set(map(stem, content_words(request)))
    if len(asked) < FEWEST:
        owners = [profile.enrichment.positive_examples[: profile.owner_examples] for profile in profiles]
        said = [any(asked == set(map(stem, content_words(example))) for example in examples) for examples in owners]
        return [position for position, is_asked in enumerate(said) if asked and is_asked]
    return [position for position, profile in enumerate(profiles) if _repeats(asked, profile)]


def _repeats(asked: set[str], profile: Profile) -> bool:
    searched = searched_text(profile)
    absent = (each for each in asked if not may_have_stem(searched.lowered, each))
    if any(islice(absent, len(asked) - math.ceil(SHARE * len(asked)), None)):  # no need to cut the text into words
        return False
    starts = tuple({each[:_PREFIX] for each in asked})
    said: set[str] = set()
    for text in searched.fields:
        said |= {stem(word) for word in set(spelled_words(text)) if word.startswith(starts)}
    return len(asked & said) >= SHARE * len(asked)


SIMILARITY = 0.65  # Word overlap (Jaccard) from which on two texts are nearly the same: docs/decisions/0035
MOST_KEPT = 3  # Near-duplicates of each other among the candidates, once one of them is older than the others
MOST_OF_A_DAY = 5  # Near-duplicates among the candidates that are equally old and trusted, as a family of one import is
_SHORTEST_DESCRIPTION = 20  # Characters; shorter descriptions coincide by chance
_READ = 4_000  # Characters of each text that are compared; bounds the work per answer
DAY = len("2026-01-31")
"""Near-duplicates of one day are equally old unless one of them would be left out: see `limit_near_duplicates`."""
_CACHED = 4_096  # Wordings kept in memory, a few kilobytes each

_LETTERS = re.compile(r"[\W_]+")


_CLASS_OF: Mapping[str, str] = {
    word: line.split()[0]
    for line in (
        "get gets fetch read view show", "list lists listing", "search find", "create creates new", "update updates",
        "set", "replace", "delete deletes destroy", "remove removes", "add adds", "start", "stop", "cancel", "approve",
        "reject deny", "accept", "decline", "enable", "disable", "lock", "unlock", "open", "close", "send", "upload",
        "download", "import", "export", "check", "rename", "merge", "star", "unstar", "follow", "unfollow", "block",
        "unblock", "organization org orgs organizations", "user users", "repository repo repos repositories",
        "enterprise enterprises", "project projects", "team teams", "environment environments",
    )
    for word in line.split()
}  # fmt: skip
"""Verbs of different meaning and scopes, each with its other spellings."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of an owner's text, of its description alone, and the description's letters without any spaces.

    The latter two are empty if the description is too short to compare.
    """

    text: frozenset[str]
    description: frozenset[str]
    letters: str
    acts: frozenset[str] = frozenset()  # Actions of the name and the title, and for whom: classes of verbs and scopes

    @classmethod
    def of(cls, profile: Profile) -> "Wording":
        """The wording of a profile; cached by its text."""
        source, examples = profile.source or SourceText(), profile.enrichment.positive_examples
        if profile.enriched:
            examples = examples[: profile.owner_examples]
        rest = (source.parameter_names, source.parameter_text, source.other, *profile.tags, *examples)
        return _wording(profile.name, source.title[:_READ], source.description[:_READ], " ".join(rest)[:_READ])

    def describes_the_same(self, other: "Wording", least: float = SIMILARITY) -> bool:
        """True if the descriptions are nearly the same, be it with other spaces."""
        if not self.letters:
            return False
        return self.letters == other.letters or _overlap(self.description, other.description, least)

    def is_near(self, other: "Wording", least: float = SIMILARITY) -> bool:
        """True if the whole texts or the descriptions are nearly the same."""
        return _overlap(self.text, other.text, least) or self.describes_the_same(other, least)

    def similarity(self, other: "Wording") -> float:
        """The overlap (Jaccard) of the whole texts or of the descriptions, the larger one, in [0, 1]."""
        if self.letters and self.letters == other.letters:
            return 1.0
        return max(_jaccard(self.text, other.text), _jaccard(self.description, other.description))


@lru_cache(maxsize=_CACHED)
def _wording(name: str, title: str, description: str, rest: str) -> Wording:
    described = skeleton(description)
    about = frozenset(words(described))
    text = about.union(words(skeleton(f"{split_identifier(name)} {rest}")))
    acts = frozenset(_CLASS_OF[word] for word in words(f"{split_identifier(name)} {title}") if word in _CLASS_OF)
    if len(description) < _SHORTEST_DESCRIPTION:
        return Wording(text, frozenset(), "", acts)
    return Wording(text, about, _LETTERS.sub("", described), acts)


def _overlap(one: frozenset[str], other: frozenset[str], least: float) -> bool:
    """True if the Jaccard similarity is at least this, greater than 0; the sizes alone rule out most pairs."""
    size, others = len(one), len(other)
    if size < least * others or others < least * size or not size:
        return False
    common = len(one & other)
    return common >= least * (size + others - common)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """The positions of the profiles that stay, ascending, and the near-duplicates of each profile that has any.

    `near` includes profiles that are left out.
    """

    kept: Sequence[int]
    near: Mapping[Id, frozenset[Id]]


def limit_near_duplicates(
    profiles: Sequence[Profile],
    *,
    unrated: int,
    echoes: Collection[int] = (),
    exact: Collection[int] = (),
    unfit: Collection[int] = (),
) -> NearDuplicates:
    """Leave out every profile with `MOST_OF_A_DAY` near-duplicates of higher priority, and all but `MOST_KEPT` echoes.

    Of those that have less trust or are younger than one of their near-duplicates, `MOST_KEPT` are enough.

    Priority: more trust, then fit before unfit, then an exact match, then active before deprecated, then an earlier day
    of registration, then the given order, most relevant first. Each is compared with those that stay only, so that two
    different texts are not related by a chain of copies between them. Of near-duplicates with equal trust and
    lifecycle, the first registered always stays: later copies cannot displace it. Echoes stay by trust, lifecycle and
    time of registration. What a namespace registered on one day is equally old: it may come from one import, whose
    order says nothing.

    `profiles` are in the order of fusion, each id once; the others are positions in it: of those that repeat the
    request (`find_echoes`), whatever else they say, of those whose id, name or title it is, and of those that cannot be
    called now.
    """
    wordings = [Wording.of(profile) for profile in profiles]
    near: dict[int, set[int]] = {}
    for later, wording in enumerate(wordings):
        for earlier in range(later):
            # Two of one namespace that do something else, or for someone else, are no duplicates, however near their
            # texts. Of different namespaces acts say nothing: a copy costs its author another verb in the name.
            same_space = profiles[later].namespace == profiles[earlier].namespace
            if not (same_space and wording.acts != wordings[earlier].acts) and wording.is_near(wordings[earlier]):
                near.setdefault(earlier, set()).add(later)
                near.setdefault(later, set()).add(earlier)
    if not near and len(echoes) <= MOST_KEPT:
        return NearDuplicates(range(len(profiles)), {})
    kept = _choose(profiles, near, frozenset(echoes), frozenset(exact), frozenset(unfit), unrated)
    ids = [profile.id for profile in profiles]
    return NearDuplicates(kept, {ids[one]: frozenset(ids[other] for other in others) for one, others in near.items()})


def _choose(
    profiles: Sequence[Profile],
    near: Mapping[int, set[int]],
    echoes: frozenset[int],
    exact: frozenset[int],
    unfit: frozenset[int],
    unrated: int,
) -> list[int]:
    rank = [
        (-trust_of(each, unrated), position in unfit, each.lifecycle is Lifecycle.DEPRECATED)
        for position, each in enumerate(profiles)
    ]
    since, day = _since(profiles), [profile.first_registered[:DAY] for profile in profiles]

    def by_day(position: int) -> tuple[int, bool, bool, bool, str, int]:
        trust, is_unfit, deprecated = rank[position]
        return trust, is_unfit, position not in exact, deprecated, day[position], position

    def by_age(position: int) -> tuple[str, int]:
        return since[position], position

    first_echoes = sorted(echoes, key=lambda position: (rank[position], *by_age(position)))[:MOST_KEPT]
    admitted = set(range(len(profiles))) - (echoes - set(first_echoes) - exact)
    kept: set[int] = set()
    left_out: list[int] = []
    for position in sorted(admitted, key=by_day):
        rivals = near.get(position, set()) & kept
        family = all((rank[other], day[other]) == (rank[position], day[position]) for other in rivals)
        if len(rivals) < (MOST_OF_A_DAY if family else MOST_KEPT):
            kept.add(position)
        else:
            left_out.append(position)
    for position in sorted(left_out, key=by_age):
        peers = [other for other in near[position] & kept if rank[other] == rank[position]]
        if peers and all(by_age(position) < by_age(peer) for peer in peers):
            kept.remove(max(peers, key=by_day))
            kept.add(position)
    return sorted(kept)


def _since(profiles: Sequence[Profile]) -> list[str]:
    """When the namespace of each profile registered its first one of that day among these."""
    imports = [(profile.namespace, profile.first_registered[:DAY]) for profile in profiles]
    first: dict[tuple[str, str], str] = {}
    for key, profile in zip(imports, profiles, strict=True):
        first[key] = min(first.get(key, profile.first_registered), profile.first_registered)
    return [first[key] for key in imports]


def trust_of(profile: Profile, unrated: int) -> int:
    """The trust of a profile; `unrated` for one without."""
    return unrated if profile.trust is None else profile.trust


def is_trusted(profile: Profile, unrated: int) -> bool:
    """True if operators trust it more than an unrated one."""
    return trust_of(profile, unrated) > unrated or (profile.provider_verified and profile.trust is None)


NEW_DAYS = 30  # For so many days a capability is new, if others were registered on an earlier day
NEW_SHARE = 0.2  # Of the candidates that may be newcomers, unless these are as usual further down: docs/decisions/0095
_KEPT_FOR_RATED = 3  # Places that the best rated ones have
_AS_NEAR, _MOST_AS_NEAR = 0.9, 4
"""Share of the nearest one's cosine from which on what is unrated is as near, and how many of it come first."""
_MOST, _ENOUGH = 0.5, 2  # The same where newcomers are usual, and how many times the candidates must be known to say so


def find_newcomers(profiles: Sequence[Profile], first: str, now: str) -> Set[int]:
    """The positions of the unrated that are new, and were registered on a later day than the `first`.

    Or later than the earliest change of a rated one after its registration: operators rated what was there.
    """
    known = (datetime.fromisoformat(now) - timedelta(days=NEW_DAYS)).isoformat()
    rated = [(each.cause.time, each.first_registered) for each in profiles if is_rated(each) and each.cause]
    reviews = [changed for changed, registered in rated if changed > registered]

    def is_later(registered: str) -> bool:
        return registered[:DAY] > first[:DAY] or any(registered > review for review in reviews)

    unrated = [(n, each.first_registered) for n, each in enumerate(profiles) if not is_rated(each)]
    return {n for n, registered in unrated if registered > known and is_later(registered)}


def is_rated(profile: Profile) -> bool:
    """True if operators gave it trust, high or low, or verified its provider."""
    return profile.trust is not None or profile.provider_verified


def limit_newcomers(
    kept: Sequence[int], newcomers: Set[int], *, of: int, k: int, share: float
) -> tuple[list[int], list[int]]:
    """Positions without, and those of, the newcomers that would displace others from the first `k`.

    `kept` has the positions of candidates among `of` known profiles, best first. Newcomers may be this `share` of the
    first `k`, or that share of what is behind them which is, up to one half.
    """
    behind = kept[k:] if of >= _ENOUGH * k else ()
    usual = sum(position in newcomers for position in behind) / len(behind) if behind else 0.0
    most = math.ceil(k * max(share, min(_MOST, usual)))
    left_out = [position for position in kept if position in newcomers][most:]
    return [position for position in kept if position not in set(left_out)], left_out


def place_rated(found: Sequence[Id], trusted: Collection[Id], cosine: Mapping[Id, float], k: int) -> list[Id]:
    """The ids found, best first, with the best `trusted` ones among the first `k`.

    Of the others that are as near to the request as these, as a flood of rewordings is, only some come before the rest.
    """
    held = frozenset(trusted)
    best = [id for id in found if id in held][:_KEPT_FOR_RATED]
    if (least := _AS_NEAR * max((cosine.get(id, 0.0) for id in best), default=0.0)) > 0:
        near = [id for id in found if id not in held and cosine.get(id, 0.0) >= least]
        behind = frozenset(near[_MOST_AS_NEAR:])
        found = [*(id for id in found if id not in behind), *near[_MOST_AS_NEAR:]]
    return list(dict.fromkeys((*found[: k - _KEPT_FOR_RATED], *best, *found)))
