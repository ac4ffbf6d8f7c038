"""Leave out near-duplicates of better candidates, and texts that repeat the request: docs/decisions/0035.

Near-duplicates are compared by their owners' text only: a writer describes two copies in different words. Echoes repeat
a request, as an attacker does who expects it; each may be padded with other words, but must keep those of the request,
and honest capabilities hold only some of these.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.policies.policy import Policy, Pool
from mats.domain.profile.index_fields import searched_text
from mats.domain.profile.profile import Profile
from mats.domain.profile.wording import Wording
from mats.domain.search.candidate import UNMARKED
from mats.domain.text.words import content_words, may_have_stem, spelled_words, stem

MOST_KEPT = 3  # Near-duplicates of each other among the candidates, once one of them is older than the others
MOST_OF_A_DAY = 5  # Near-duplicates among the candidates that are equally old and trusted, as a family of one import is


@dataclass(frozen=True)
class Duplicates(Policy):
    """Of near-duplicates, and of echoes, only some may be candidates."""

    name: ClassVar = "duplicates"
    unrated: int  # The trust of an unrated profile beside others, 0 to 100

    def choose(self, pool: Pool, evidence: None) -> Pool:
        limited = limit_near_duplicates(
            pool.profiles,
            unrated=self.unrated,
            echoes=find_echoes(pool.ask.text, pool.profiles),
            exact=pool.positions(lambda marks: marks.exact),
            unfit=pool.positions(lambda marks: marks.unfit),
        )
        for id, near in limited.near.items():
            pool = pool.mark([id], near=near | pool.marks.get(id, UNMARKED).near)
        return replace(pool, kept=limited.kept)


SHARE = 0.8  # Share of a request's content words from which on a profile repeats it
FEWEST = 4  # Content words; a shorter request may be a capability's own name
_PREFIX = 2  # Words that share a stem share at least these first letters


def find_echoes(request: str, profiles: Iterable[Profile]) -> list[int]:
    """The positions of the profiles that repeat the request, in any field and order; a short one as an example."""
    asked = set(map(stem, content_words(request)))
    if len(asked) < FEWEST:
        owners = [profile.examples_by_owner for profile in profiles]
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
            if wording.is_near(wordings[earlier]):
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
        (-each.trust_or(unrated), position in unfit, each.lifecycle is Lifecycle.DEPRECATED)
        for position, each in enumerate(profiles)
    ]
    since, day = _since(profiles), [profile.day for profile in profiles]

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
    imports = [(profile.namespace, profile.day) for profile in profiles]
    first: dict[tuple[str, str], str] = {}
    for key, profile in zip(imports, profiles, strict=True):
        first[key] = min(first.get(key, profile.first_registered), profile.first_registered)
    return [first[key] for key in imports]
