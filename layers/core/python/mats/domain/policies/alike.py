"""Name the other products that do what the first result does, where the request names none."""

from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from mats.domain.policies.acts import act_of
from mats.domain.policies.policy import Ask, Policy, Pool
from mats.domain.profile.profile import Profile
from mats.domain.search.candidate import Result
from mats.domain.search.lookups import Lookups, Vector
from mats.domain.search.shortlist import Ranked, quote_id
from mats.domain.search.verdict import Verdict
from mats.domain.text.acts import VERBS
from mats.domain.text.words import content_words, split_identifier, stem, stems

ALSO = "also in other products:"
_MORE = 1  # Words of its name, verbs aside, that were not asked for, up to which an operation is as plain
_AS_RELEVANT = 0.5  # Share of the relevance of the first result from which on another one is as good an answer
_MOST = 3  # Products that are named
_CACHED = 4_096  # Names and titles, and descriptions, whose words are kept
_LABELS = 2  # Of a namespace, which tell products apart


@dataclass(frozen=True)
class Alike(Policy):
    """A caller can ask which product is meant. Only where names and descriptions have everything that was asked for."""

    name: ClassVar = "alike"

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> Set[str]:
        return (
            {stem(word) for word in content_words(ask.plain) if word not in VERBS} if ask.plain == ask.text else set()
        )

    def choose(self, pool: Pool, evidence: Set[str]) -> Pool:
        plain = [each.id for each in pool.profiles if evidence and _is_plain(each, evidence)]
        return pool.mark(plain, plain=True)

    def arrange(self, ranked: Ranked) -> Ranked:
        first = next(iter(ranked.results), None)
        if not first or not first.candidate.marks.plain or ranked.thresholds.verdict(first.relevance) is Verdict.NONE:
            return ranked
        product, act = _product(first), act_of(first.candidate.profile)
        others: dict[str, str] = {}
        for each in ranked.results if act else ():
            as_good = each.candidate.marks.plain and each.relevance >= _AS_RELEVANT * first.relevance
            if as_good and act_of(each.candidate.profile) is act and _product(each) != product:
                others.setdefault(_product(each), quote_id(each.id))
        note = f"{ALSO} {', '.join([*others.values()][:_MOST])}; ask which one is meant"
        return ranked.with_results(ranked.results, note) if others else ranked


def _is_plain(profile: Profile, asked: Set[str]) -> bool:
    """True if its name or title has some of what was asked for and hardly more, and its description has the rest."""
    title, description = (profile.source.title, profile.source.description) if profile.source else ("", "")
    named = map(_things, (split_identifier(profile.name), title))
    missing = [asked - said for said in named if said & asked and len(said - asked) <= _MORE]
    return not all(missing) or any(each <= _stems(description) for each in missing)


@lru_cache(maxsize=_CACHED)
def _things(text: str) -> Set[str]:
    return {stem(word) for word in content_words(text) if word not in VERBS and word.removesuffix("s") not in VERBS}


_stems = lru_cache(maxsize=_CACHED)(stems)


def _product(result: Result) -> str:
    return ".".join(result.candidate.profile.namespace.split(".")[:_LABELS])
