"""The owner's mirror: what was asked of each capability, how it did, to what it lost requests and why.

A request asks for what comes first in a search of everything, whatever its kind and audience; what its caller was shown
instead tells the cause. Of requests whose texts are not stored only what they showed is known.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.errors import CapabilityNotFound
from mats.domain.learning.outcome import Event, Receipt, unpack_vector
from mats.domain.profile.index_fields import lexical_fields
from mats.domain.profile.profile import Profile, Status
from mats.domain.ranking.blend import Verdict
from mats.domain.ranking.query import Filter, Query
from mats.domain.shortlist.rank import Shortlist
from mats.domain.text.words import clip, content_words, split_identifier, stem, stems
from mats.edge.schema import WHOLE, Parameters
from mats.local.preview.report import SPARSE, ask, competitors, offline
from mats.ports import LanguageBound, OutcomeCounts, SearchIndex, Stored
from mats.usecases.discover import Discover
from mats.usecases.find_demand import MOST

FIVE = 5  # Places of an answer that count as found
_MOST_TEXTS = 2_000  # Different requests that are searched again, the latest: some 10 ms each
_COMMON = 0.05  # Share of capabilities from which on a word tells none of them apart
_FEW = 200  # Different requests below which the words that they use are not known
_OWN = 0.25  # Share of what asks for other kinds, up to which next to nothing asks for its own
_SURE = 2  # Requests, or words, that are enough against other evidence
_LOST, _OTHERS, _RIVALS, _WORDS = 20, 20, 5, 8  # Requests a sentence is tried with, rivals that are named, its words


class Cause(StrEnum):
    """Why a capability is not found by requests that it may serve, and what helps."""

    advice: str

    def __new__(cls, value: str, advice: str) -> "Cause":
        made = str.__new__(cls, value)
        made._value_, made.advice = value, advice
        return made

    AUDIENCE = (
        "invisible by audience",
        "those who ask are in none of its audiences: widen `visible_to`, or give them one",
    )
    KIND = "wrong kind", "requests that it would serve ask for another kind: register it as that kind"
    TWIN = (
        "shadowed by a twin",
        "nearly the same text comes before it: register one of the two, or say in both how they differ; if the other "
        "copied it, an operator can say so: mats trust ID 60",
    )
    HELD = "held", "its registration waits for an operator: mats review"
    REJECTED = "rejected", "its registration was rejected: mats show ID"
    SILENT = "silent description", "say its task and its users, in the words of a request: its text has few of them"
    DEPRECATED = "deprecated", "what is active comes before it"
    SUSPICIOUS = "flagged as suspicious", "answers warn of its text: mats preview ID says of what"
    LANGUAGE = "wrong language", "the encoder does not read its language: add a description in English"
    OUTRANKED = "outranked", "others come before it: say how it differs from them, in the words of these requests"
    UNASKED = "never asked", "no request is near what its text says"


class Asked(NamedTuple):
    """A request that a capability may serve: its place in a search of everything, and what became of it.

    `leads`: nothing that comes before it there was shown first. `cause` is None if it was among the first five shown,
    `to` is what came before it.
    """

    receipt: Receipt
    place: int
    leads: bool
    cause: Cause | None
    to: Id | None


@dataclass(slots=True, kw_only=True)
class Image:
    """What the log says of one capability; `shown` counts the first five places."""

    profile: Profile
    counts: OutcomeCounts
    asked: list[Asked] = field(default_factory=list)
    shown: int = 0
    first: int = 0
    cause: Cause | None = None

    @property
    def losses(self) -> list[Asked]:
        return [each for each in self.asked if each.cause]

    def to_json(self) -> dict[str, Any]:
        reported = self.counts
        return {
            "id": self.profile.id,
            "asked": len(self.asked),
            "shown": self.shown,
            "first": self.first,
            "chosen": reported.selected + reported.succeeded + reported.failed + reported.wrong,
            "succeeded": reported.succeeded,
            "lost": len(self.losses),
            "cause": self.cause,
            "advice": self.cause and self.cause.advice,
        }


class MirrorQuery(Parameters):
    """Of one capability, by its id, or of all; for an owner in these audiences, or without any for an operator."""

    id: str = ""
    audience: tuple[str, ...] = ()
    days: Annotated[int, WHOLE, Field(ge=1, le=3650)] = 30
    limit: Annotated[int, WHOLE, Field(ge=1, le=1_000)] = 100


_Places = Mapping[Id, tuple[int, frozenset[Id]]]
"""Of the candidates of a search, each with its near-duplicates; those that were left out share a place."""


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """The log of use since a time, over everything registered. What it finds out is computed once."""

    local: LocalSystem
    receipts: Sequence[Receipt]
    profiles: Mapping[Id, Profile]

    @classmethod
    def over(cls, local: LocalSystem, days: int = 30) -> "Mirror":
        """Read the log of the last days. Raises DependencyFailed: the file cannot be used."""
        stores = local.stores
        if stores.receipts:
            stores.receipts.flush()
        since = (datetime.fromisoformat(local.clock.now()) - timedelta(days=days)).isoformat(timespec="seconds")
        listed = stores.listing.profiles(list(stores.registry.ids()))
        profiles = {each.profile.id: each.profile for each in listed}
        return cls(local=local, receipts=stores.receipt_log.since(since, most=MOST), profiles=profiles)

    def answer(self, query: MirrorQuery) -> dict[str, Any]:
        """What is not found and why, the most lost first; or all of one capability.

        An owner sees what is visible to its audiences, and the texts of requests whose callers were in no others.

        Raises:
            CapabilityNotFound: nothing is registered under the id, or the owner does not see it.
            DependencyFailed: the index did not answer, or cannot be locked.
        """
        owner = _Owner(frozenset(query.audience) if query.audience else None)
        seen = [image for image in self.images.values() if owner.sees(image.profile)]
        hidden, different = sum(not each.text for each in self.receipts), len({each.text for each in self.receipts})
        count = f"{hidden:,} request{'s' * (hidden != 1)}"
        notes = {
            f"the texts of {count} are not stored (MATS_LOG_QUERIES=hash): only what they showed counts": hidden,
            f"only the latest {_MOST_TEXTS:,} of {different:,} requests are searched again": different > _MOST_TEXTS,
        }
        answer = {"requests": len(self.receipts), "notes": [note for note, holds in notes.items() if holds]}
        if query.id:
            image = next((image for image in seen if image.profile.id == query.id), None)
            if image is None:
                raise CapabilityNotFound(Id(query.id))
            return {**answer, **self._describe(image, owner)}
        seen.sort(key=lambda image: (image.cause is None, -len(image.losses), image.profile.id))
        never = sorted(image.profile.id for image in seen if not image.shown)
        return {
            **answer,
            "capabilities": [image.to_json() for image in seen[: query.limit]],
            "more": max(0, len(seen) - query.limit),
            "causes": Counter(image.cause for image in seen if image.cause),
            "never_found": {"count": len(never), "ids": never[: query.limit]},
        }

    @cached_property
    def images(self) -> Mapping[Id, Image]:
        counts = self.local.stores.use_log.counts(list(self.profiles))
        images = {
            id: Image(profile=profile, counts=counts.get(id, OutcomeCounts())) for id, profile in self.profiles.items()
        }
        for receipt in self.receipts:
            for place, id in enumerate(receipt.shown[:FIVE]):
                if id in images:
                    images[id].shown += 1
                    images[id].first += place == 0
        for text, places in self.places.items():
            for id in (id for id, (place, _) in places.items() if place <= FIVE and id in images):
                images[id].asked += [_judge(images[id].profile, each, places) for each in self._by_text[text]]
        for image in images.values():
            image.cause = self._cause(image)
        return images

    @cached_property
    def places(self) -> Mapping[str, _Places]:
        """The candidates of each request in a search of everything; none where that found nothing."""
        everyone = {one for profile in self.profiles.values() for one in profile.visible_to or ()}
        found: dict[str, _Places] = {}
        for text in self._by_text:
            answer, places = self._discover(Query(query=text), everyone), dict[Id, tuple[int, frozenset[Id]]]()
            for place, result in enumerate(answer.ranked if answer.verdict is not Verdict.NONE else (), start=1):
                for id in (result.id, *result.alternates):
                    places.setdefault(id, (place, result.candidate.near | {result.id}))
            found[text] = places
        return found

    @cached_property
    def _by_text(self) -> Mapping[str, Sequence[Receipt]]:
        """The requests that can be searched again, the latest first; of other filters than kinds nothing is known."""
        found: dict[str, list[Receipt]] = defaultdict(list)
        for each in self.receipts:
            if each.text and (each.kinds or not each.narrowed):
                found[each.text].append(each)
        return dict(list(found.items())[:_MOST_TEXTS])

    @cached_property
    def _discover(self) -> Discover:
        encoder = self.local.models.encoder
        stored = [each for each in self.receipts if each.vector and encoder and each.encoder == encoder.name]
        known = {each.text: array("f", unpack_vector(each.vector or b"")) for each in stored}
        return offline(self.local.discover, self._by_text, known)

    def _search(self, index: SearchIndex, receipt: Receipt) -> Shortlist:
        return ask(self._discover, index, Query(query=receipt.text, kinds=receipt.kinds), receipt.audiences)

    def _cause(self, image: Image) -> Cause | None:
        profile, leads = image.profile, Counter[Cause | None]()
        weights: dict[Cause | None, float] = defaultdict(float)
        for one in image.asked:
            weights[one.cause] += 1 / one.place
            leads[one.cause] += one.leads
        total, found, kind = sum(weights.values()), weights[None], weights[Cause.KIND]
        own = sum(1 / one.place for one in image.asked if profile.kind in one.receipt.kinds)
        instead = found < kind and own <= _OWN * kind and 2 * kind > image.first
        absent = not (image.first or 2 * found > total) and bool(self._by_text)
        encoder, description = self.local.models.encoder, profile.source.description if profile.source else ""
        unread = isinstance(encoder, LanguageBound) and not encoder.reads(description)
        holds = {
            Cause.HELD: not profile.findable and profile.status is Status.HELD,
            Cause.REJECTED: not profile.findable,
            Cause.AUDIENCE: not image.first and 2 * weights[Cause.AUDIENCE] > total,
            Cause.TWIN: not image.first and 2 * weights[Cause.TWIN] >= total > 0,
            Cause.LANGUAGE: absent and unread,
            Cause.SILENT: self._is_silent(image) and leads[Cause.KIND] < _SURE,
            Cause.KIND: instead and (not image.first or kind > 2 * found or leads[Cause.KIND] >= max(leads[None], 1)),
            Cause.DEPRECATED: absent and profile.lifecycle is Lifecycle.DEPRECATED,
            Cause.SUSPICIOUS: absent and bool(profile.suspicious),
            Cause.OUTRANKED: absent and bool(image.asked),
            Cause.UNASKED: absent,
        }
        return next((cause for cause, found in holds.items() if found), None)

    def _is_silent(self, image: Image) -> bool:
        """Whether its text tells little; of what was ever first, less, and nothing of its name, which tells no more."""
        said, name = _stems_of(image.profile, "name", "other"), stems(split_identifier(image.profile.name))
        if not image.first:
            return self._count_telling(said) < SPARSE
        spoken = self._count_telling(name) >= _SURE or not said.isdisjoint(name)
        proven = spoken or image.counts.succeeded or len(self._by_text) < _FEW
        return self._count_telling(said) < SPARSE - _SURE and not proven

    def _count_telling(self, said: set[str]) -> int:
        """Those that requests use, where their words are known, and that few capabilities use."""
        return sum(map(self._tells, said if len(self._by_text) < _FEW else said & self._request_stems))

    def _tells(self, stem: str) -> bool:
        return self._word_counts[stem] <= max(FIVE, _COMMON * len(self.profiles))

    @cached_property
    def _word_counts(self) -> Counter[str]:
        return Counter(one for profile in self.profiles.values() for one in _stems_of(profile, "name", "other"))

    @cached_property
    def _request_stems(self) -> set[str]:
        return set().union(*map(stems, self._by_text))

    def _describe(self, image: Image, owner: "_Owner") -> dict[str, Any]:
        rivals = Counter(each.to for each in image.losses if each.to).most_common(_RIVALS)
        return {
            **image.to_json(),
            "causes": Counter(each.cause for each in image.losses),
            "lost_to": [self._rival(image, to, owner) for to, _ in rivals],
            "rewrite": self._rewrite(image, owner),
        }

    def _rival(self, image: Image, to: Id, owner: "_Owner") -> dict[str, Any]:
        """What came before a capability, in how many requests, and why in the latest of them."""
        lost = [each for each in image.losses if each.to == to]
        ranked = [each for each in lost if each.cause in (Cause.TWIN, Cause.OUTRANKED)]
        seen, why = owner.sees(self.profiles.get(to)), list[str]()
        read = [each.receipt for each in ranked or lost if owner.reads(each.receipt)]
        if ranked and seen and read:
            answer = self._search(self.local.stores.index, read[0])
            found = competitors(answer.ranked, image.profile, read[0].text)
            why = [reason for one in found if one.id == to for reason in one.why]
        texts = [clip(text, 200) for text in dict.fromkeys(each.text for each in read)][:3]
        return {"id": to if seen else None, "requests": len(lost), "why": why, "examples": texts}

    def _rewrite(self, image: Image, owner: "_Owner") -> dict[str, Any] | None:
        """The sentence before the description that wins most lost requests and takes the first place of no other.

        Each is tried in a real search; None if none does.
        """
        profile, maker, index = image.profile, self.local.profile_maker, self.local.stores.index
        lost, others = self._lost_and_others(image, owner)
        said, least = _stems_of(profile), min(3, len(lost)) / 2
        lacking = Counter(word for each in lost for word in sorted({*content_words(each.text)}) if not word.isdecimal())
        words = [word for word, times in lacking.most_common() if times >= least and stem(word) not in said]
        if profile.source is None or not words:
            return None
        typical = max(sorted(each.text for each in lost), key=lambda text: len(stems(text) & set(map(stem, words))))
        tried = []
        for sentence in (
            f"For {', '.join(words[:_WORDS])}.",
            f"For {', '.join(words[: _WORDS // 2])}.",
            f"For requests such as: {clip(typical, 200)}.",
        ):
            source = profile.source.model_copy(update={"description": f"{sentence} {profile.source.description}"})
            made = profile.model_copy(update={"source": source})
            entry = Stored(made, maker.encode([made])[0] if maker.encoder else None)
            with index.with_candidate(entry) as copy:
                found = sum(profile.id in _first(self._search(copy, each)) for each in lost)
                if found and not any(profile.id in _first(self._search(copy, each), 1) for each in others):
                    tried.append((found, sentence))
        if not tried:
            return None
        found, sentence = max(tried)
        effect = (
            f"with it {found} of {len(lost)} lost requests have it among the first {FIVE}; none of {len(others)} "
            "requests near it loses its first to it"
        )
        return {"sentence": sentence, "effect": effect, "found": found, "lost": len(lost), "others": len(others)}

    def _lost_and_others(self, image: Image, owner: "_Owner") -> tuple[list[Receipt], list[Receipt]]:
        """Requests that a capability lost although it was a candidate, and others that it has no claim to.

        Those lost share a telling word with it, and nobody reported that something served them.
        """
        id, said = image.profile.id, {one for one in _stems_of(image.profile) if self._tells(one)}
        lost, others = list[Receipt](), list[Receipt]()
        for text, places in self.places.items():
            receipt = self._by_text[text][0]
            if id not in places or _obstacle(image.profile, receipt) or id in receipt.shown[:1]:
                continue
            if (
                id not in receipt.shown[:FIVE]
                and said & stems(text)
                and owner.reads(receipt)
                and not self._has_been_served(receipt)
            ):
                lost.append(receipt)
            elif places[id][0] > 1:
                others.append(receipt)
        return lost[:_LOST], others[:_OTHERS]

    def _has_been_served(self, receipt: Receipt) -> bool:
        reported = self.local.stores.outcomes.of(receipt.query_id)
        return reported is not None and any(Event.SUCCEEDED in events for events in reported.events.values())


class _Owner(NamedTuple):
    """Who looks: an owner in these audiences; None: an operator, who sees everything."""

    audiences: frozenset[str] | None

    def sees(self, profile: Profile | None) -> bool:
        return self.audiences is None or bool(profile and Filter(audiences=self.audiences).sees(profile.visible_to))

    def reads(self, receipt: Receipt) -> bool:
        return self.audiences is None or receipt.audiences <= self.audiences


def _first(answer: Shortlist, most: int = FIVE) -> list[Id]:
    return [one.id for one in answer.ranked[:most]]


def _stems_of(profile: Profile, *without: str) -> set[str]:
    return stems(" ".join(text for name, text in lexical_fields(profile).items() if name not in without))


def _obstacle(profile: Profile, receipt: Receipt) -> Cause | None:
    if profile.visible_to is not None and receipt.audiences.isdisjoint(profile.visible_to):
        return Cause.AUDIENCE
    return Cause.KIND if receipt.kinds and profile.kind not in receipt.kinds else None


def _judge(profile: Profile, receipt: Receipt, places: _Places) -> Asked:
    id, (place, near), shown = profile.id, places[profile.id], receipt.shown[:FIVE]
    before = shown[: shown.index(id)] if id in shown else shown
    twin = next((other for other in before if other in near and other != id), None)
    missed = None if id in shown else Cause.OUTRANKED
    cause = _obstacle(profile, receipt) or (Cause.TWIN if twin else missed)
    leads = not shown or shown[0] not in places or place <= places[shown[0]][0]
    return Asked(receipt, place, leads, cause, twin or (before[0] if before else None))
