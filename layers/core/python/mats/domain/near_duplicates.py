"""Near-duplicates: capabilities whose owners wrote nearly the same text, however it is spelled.

Only owners' text counts: a writer describes two copies in different words.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mats.domain.capability import Id, Lifecycle
from mats.domain.fence import is_hidden
from mats.domain.profile import Profile, SourceText
from mats.domain.text import split_identifier, words

SIMILARITY = 0.65
"""Word overlap (Jaccard) from which on two texts are nearly the same: docs/decisions/0035."""
MOST_KEPT = 3
"""Near-duplicates of each other among the candidates."""
UNRATED = 50
"""The trust of an unrated profile when near-duplicates are compared and operators set no prior."""

_TELLING = 20
"""Descriptions of fewer characters coincide by chance."""
_READ = 4_000
"""Characters of each text that are compared; bounds the work per answer."""
_DAY = len("2026-01-31")
"""Registrations of one day are equally old, for the order within an import means nothing."""
_CACHED = 4_096
"""Wordings kept in memory, a few kilobytes each."""

_LOOKALIKES = {
    "a": "аАαΑɑᴀ", "b": "вВьЬβΒʙƅ", "c": "сСϲϹᴄ", "d": "ԁԀɗᴅ", "e": "еЕεΕєЄᴇ", "f": "ƒꜰ", "g": "ɡɢԍԌ",
    "h": "һҺнНΗʜ", "i": "іІιΙɩıɪӏӀ", "j": "јЈϳᴊ", "k": "кКκΚᴋ", "l": "ʟ", "m": "мМΜᴍ", "n": "пηΝɴո",
    "o": "оОοΟσᴏօ", "p": "рРρΡᴘ", "q": "ԛԚ", "r": "гʀᴦ", "s": "ѕЅꜱ", "t": "тТτΤᴛ", "u": "υμᴜս",
    "v": "νѵѴᴠ", "w": "ѡԝԜωᴡ", "x": "хХχΧ", "y": "уУγΥүҮʏ", "z": "Ζᴢ",
}  # fmt: skip
"""Cyrillic, Greek, Armenian and phonetic letters that look like a Latin one."""
_AS_LATIN = {ord(letter): latin for latin, letters in _LOOKALIKES.items() for letter in letters}
_AS_ONE = str.maketrans("l1|0", "iiio")
"""A capital I looks like l, 1 and |, and a capital O like 0."""
_LETTERS = re.compile(r"[\W_]+")


def skeleton(text: str) -> str:
    """The text as it looks: folded case and width, no accents or hidden characters, look-alikes as Latin letters."""
    if not text.isascii():
        seen = (c for c in unicodedata.normalize("NFKD", text) if not is_hidden(c) and unicodedata.category(c) != "Mn")
        text = "".join(seen).translate(_AS_LATIN)
    return text.casefold().translate(_AS_ONE)


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of an owner's text, of its description alone, and the description's letters without any spaces.

    The latter two are empty for a description too short to tell.
    """

    text: frozenset[str]
    description: frozenset[str]
    letters: str

    @classmethod
    def of(cls, profile: Profile) -> "Wording":
        """The wording of a profile; cached by its text."""
        source, examples = profile.source or SourceText(), profile.enrichment.positive_examples
        if profile.enriched:
            examples = examples[: profile.owner_examples]
        rest = (source.parameter_names, source.parameter_text, source.other, *profile.tags, *examples)
        return _wording(profile.name, source.description[:_READ], " ".join(rest)[:_READ])

    def describes_the_same(self, other: "Wording", least: float = SIMILARITY) -> bool:
        """Whether the descriptions are nearly the same, be it with other spaces."""
        if not self.letters:
            return False
        return self.letters == other.letters or _overlap(self.description, other.description, least)

    def is_near(self, other: "Wording", least: float = SIMILARITY) -> bool:
        """Whether the whole texts or the descriptions are nearly the same."""
        return _overlap(self.text, other.text, least) or self.describes_the_same(other, least)


@lru_cache(maxsize=_CACHED)
def _wording(name: str, description: str, rest: str) -> Wording:
    described = skeleton(description)
    about = frozenset(words(described))
    text = about.union(words(skeleton(f"{split_identifier(name)} {rest}")))
    if len(description) < _TELLING:
        return Wording(text, frozenset(), "")
    return Wording(text, about, _LETTERS.sub("", described))


def _overlap(one: frozenset[str], other: frozenset[str], least: float) -> bool:
    """Whether the Jaccard similarity is at least this, greater than 0; the sizes alone rule out most pairs."""
    size, others = len(one), len(other)
    if size < least * others or others < least * size or not size:
        return False
    common = len(one & other)
    return common >= least * (size + others - common)


@dataclass(frozen=True, slots=True)
class Shared:
    """Profiles that share places with their near-duplicates.

    `kept` are positions among the profiles, in order; `near` has the near-duplicates of each profile that has any, kept
    or left out.
    """

    kept: Sequence[int]
    near: Mapping[Id, frozenset[Id]]


def share_places(profiles: Sequence[Profile], *, prior: int | None, most: int = MOST_KEPT) -> Shared:
    """Leave out every profile that has `most` near-duplicates of higher priority.

    Priority: more trust, then active before deprecated, then an earlier day of registration, then the given order, most
    relevant first. Each is compared with those that stay only, so that two different texts are not related by a chain
    of copies between them. Of near-duplicates with equal trust and lifecycle, the first registered always stays: later
    copies cannot displace it.

    Args:
        profiles: The candidates in the order of fusion, each id once.
        prior: The trust of an unrated profile, 0 to 100; None: `UNRATED`.
        most: Near-duplicates of each other that may stay.
    """
    wordings = [Wording.of(profile) for profile in profiles]
    near: dict[int, set[int]] = {}
    for later, wording in enumerate(wordings):
        for earlier in range(later):
            if wording.is_near(wordings[earlier]):
                near.setdefault(earlier, set()).add(later)
                near.setdefault(later, set()).add(earlier)
    if not near:
        return Shared(range(len(profiles)), {})
    kept = _choose(profiles, near, prior, most)
    ids = [profile.id for profile in profiles]
    return Shared(kept, {ids[one]: frozenset(ids[other] for other in others) for one, others in near.items()})


def _choose(profiles: Sequence[Profile], near: Mapping[int, set[int]], prior: int | None, most: int) -> list[int]:
    rank = [(-trust_of(each, prior), each.lifecycle is Lifecycle.DEPRECATED) for each in profiles]

    def by_day(position: int) -> tuple[tuple[int, bool], str, int]:
        return rank[position], profiles[position].first_registered[:_DAY], position

    def by_age(position: int) -> tuple[str, int]:
        return profiles[position].first_registered, position

    kept: set[int] = set()
    left_out: list[int] = []
    for position in sorted(range(len(profiles)), key=by_day):
        if len(near.get(position, set()) & kept) < most:
            kept.add(position)
        else:
            left_out.append(position)
    for position in sorted(left_out, key=by_age):
        peers = [other for other in near[position] & kept if rank[other] == rank[position]]
        if peers and all(by_age(position) < by_age(peer) for peer in peers):
            kept.remove(max(peers, key=by_day))
            kept.add(position)
    return sorted(kept)


def trust_of(profile: Profile, prior: int | None) -> int:
    """The trust of a profile, or the prior of an unrated one."""
    unrated = UNRATED if prior is None else prior
    return unrated if profile.trust is None else profile.trust
