"""Say in a few words what a caller may find: kinds, counts, and the subjects that most owners have."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from mats.domain.capability.capability import Kind
from mats.domain.profile.index_keys import GENERIC_LABELS
from mats.domain.profile.profile import Profile
from mats.domain.prompts.rerank_prompt import tokens
from mats.domain.search.query import Filter
from mats.domain.text.common_words import GENERIC, ORDINARY
from mats.domain.text.words import STOP_WORDS, split_identifier, stem, words
from mats.ports import Clock, SearchIndex

MAX_TOKENS = 60
_COUNTED = 1_000  # Capabilities of a kind; more are "over 1,000"
_SPACES, _EACH = 25, 20  # Namespaces that are read, evenly spread, and capabilities of each
_SUBJECTS, _OWNERS = 8, 5
_AUDIENCES = 1_000  # Sets whose digests are kept
_WORD = re.compile("[a-z]{3,16}")
_NO_SUBJECT = STOP_WORDS | ORDINARY | GENERIC | GENERIC_LABELS


@dataclass(frozen=True)
class Digest:
    """What callers in these audiences may find; the same text for a day (UTC).

    Owners' words get in one by one, in alphabetical order, and only those that several owners use: nobody can write a
    sentence with them. An owner is a domain, or where there are fewer than five a namespace.
    """

    index: SearchIndex
    clock: Clock

    @cached_property
    def _texts(self) -> Callable[[str, frozenset[str]], str]:
        """The texts by day and audiences."""
        return lru_cache(maxsize=_AUDIENCES)(lambda day, audiences: self._text(Filter(audiences=audiences)))

    def __call__(self, audiences: frozenset[str]) -> str:
        """At most `MAX_TOKENS` tokens; empty if there is nothing. Raises DependencyFailed: the index did not answer."""
        return self._texts(self.clock.now()[:10], audiences)

    def _text(self, visible: Filter) -> str:
        counts = {kind: len(self.index.page(Filter(frozenset({kind}), audiences=visible.audiences), after=None,
                                            limit=_COUNTED + 1)) for kind in Kind}  # fmt: skip
        kinds = ", ".join(_count(number, kind) for kind, number in counts.items() if number)
        subjects = sorted(_subjects(self._some(visible))) if kinds else []
        while subjects and tokens(_sentence(kinds, subjects)) > MAX_TOKENS:
            subjects.pop()
        return _sentence(kinds, subjects) if kinds else ""

    def _some(self, visible: Filter) -> Iterator[Profile]:
        """Capabilities of namespaces that are spread over all of them."""
        spaces = sorted(self.index.namespaces(visible))
        for space in spaces[:: -(-len(spaces) // _SPACES) or 1]:
            within = Filter(audiences=visible.audiences, namespaces=frozenset({space}))
            found = self.index.fetch(self.index.page(within, after=None, limit=_EACH))
            yield from (each for each in found.values() if visible.sees(each.visible_to) and not each.suspicious)


def _count(number: int, kind: Kind) -> str:
    return f"over {_COUNTED:,} {kind}s" if number > _COUNTED else f"{number:,} {kind}{'' if number == 1 else 's'}"


def _sentence(kinds: str, subjects: list[str]) -> str:
    return f"When last counted, it had {kinds}" + (f", on {', '.join(subjects)} and more." if subjects else ".")


def _subjects(profiles: Iterable[Profile]) -> list[str]:
    """The words of names and tags that most owners use, each as it is spelled most briefly."""
    used: dict[str, set[str]] = defaultdict(set)
    times: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for profile in profiles:
        for word in words(f"{split_identifier(profile.name)} {' '.join(profile.tags)}"):
            if _WORD.fullmatch(word) and word not in _NO_SUBJECT:
                used[stem(word)].add(profile.namespace)
                times[stem(word)] += 1
                spelled[stem(word)] = min(word, spelled.get(stem(word), word), key=lambda each: (len(each), each))
    domains = {space: _domain(space) for spaces in used.values() for space in spaces}
    if len(set(domains.values())) >= _OWNERS:
        used = {word: {domains[space] for space in spaces} for word, spaces in used.items()}
    shared = sorted(
        (word for word in used if len(used[word]) > 1), key=lambda word: (-len(used[word]), -times[word], word)
    )
    return [spelled[word] for word in shared[:_SUBJECTS]]


def _domain(namespace: str) -> str:
    labels = namespace.split(".")
    return ".".join(labels[: 3 if labels[:2] == ["io", "github"] else 2])
