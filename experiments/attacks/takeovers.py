"""Attacks by new registrations on one request each, by somebody who knows it and the encoder.

Beside older capabilities, and beside a rated one of the same day.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from experiments.attacks.registry import AttackedRegistry
from experiments.attacks.scene import SEED, AttackTarget
from experiments.attacks.table import FLOOD, make_item, schema_of
from mats.domain.capability.registration import Registration
from mats.domain.text.words import STOP_WORDS, content_words, split_identifier, words
from mats.ports import Encoder

LATER = timedelta(days=40)  # Between the registrations and those of attackers
RATED = 80
_VOCABULARY, _NEAR, _TRIED = 3_000, 8, 120  # Words of a registry, of these the nearest of one, and rewordings tried
_MOST_ALIKE, _MOST_REPEATED = 0.58, 0.75
"""Word overlap of two rewordings, and share of the request's words, that no limit by text sees."""
CROWD, _SAID, _SHORT = 60, 0.6, 3  # Items that fill the hits, the share of a request's words in each, and short ones


@dataclass(frozen=True)
class Attacker:
    """An attacker who knows the encoder, the registered capabilities, and a request."""

    registry: AttackedRegistry
    encoder: Encoder

    @cached_property
    def _vocabulary(self) -> tuple[list[str], Any]:
        texts = (item.description for item in self.registry.registrations)
        counts = Counter(word for text in texts for word in words(text) if word not in STOP_WORDS)
        known = [word for word, _ in counts.most_common(_VOCABULARY) if word.isalpha()]
        return known, self._encode(known)

    def _encode(self, texts: Sequence[str]) -> Any:
        return np.array([np.asarray(vector, np.float32) for vector in self.encoder.encode_documents(texts)])

    def _near(self, word: str) -> list[str]:
        known, vectors = self._vocabulary
        return [known[at] for at in np.argsort(-(vectors @ self._encode([word])[0]))[:_NEAR]]

    @cached_property
    def rewordings(self) -> Callable[[str], list[str]]:
        """The rewordings of a request, made once."""
        return cache(self._reword)

    def _reword(self, request: str) -> list[str]:
        """Of random rewordings the nearest that repeat neither the request nor each other."""
        request, chance = request[:300], random.Random(SEED)
        own = set(content_words(request))
        near = {word: self._near(word) for word in own}
        tried = {" ".join(chance.choice([word, *near.get(word, ())]) for word in words(request)) for _ in range(_TRIED)}
        texts = sorted(text for text in tried if len(own & set(words(text))) < _MOST_REPEATED * max(4, len(own)))
        if not texts:
            return []
        cosines = self._encode(texts) @ np.asarray(self.encoder.encode_query(request), np.float32)
        chosen: list[str] = []
        for text in (texts[at] for at in np.argsort(-cosines)):
            if len(chosen) < FLOOD and all(_overlap(text, other) < _MOST_ALIKE for other in chosen):
                chosen.append(text)
        return chosen

    def _others(self, target: AttackTarget, count: int) -> list[Registration]:
        """Capabilities of other tasks, with a description."""
        chance = random.Random(target.query.id)
        pool = [item for item in self.registry.registrations if len(item.description) > 60]
        return chance.choices([item for item in pool if item.id not in target.query.relevant], k=count)

    def _pair_with_others(self, target: AttackTarget) -> Iterator[tuple[int, str, Registration]]:
        """The number of each rewording, its text, and a capability of another task."""
        texts = self.rewordings(target.query.text)
        return zip(range(len(texts)), texts, self._others(target, len(texts)), strict=True)

    def reword(self, target: AttackTarget) -> list[Registration]:
        return [_tool(f"{text}.", number) for number, text in enumerate(self.rewordings(target.query.text))]

    def reword_in_namespaces(self, target: AttackTarget) -> list[Registration]:
        return [
            _tool(
                f"{text}.",
                number,
                namespaces=FLOOD,
                tags=sorted(content_words(other.name))[:3],
                provider=f"Provider {number}",
                input_schema=schema_of(*(f"{word}_{number}" for word in words(other.name)[:3])),
            )
            for number, text, other in self._pair_with_others(target)
        ]

    def borrow(self, target: AttackTarget) -> list[Registration]:
        return [
            _tool(f"{other.description[:200]} {text}.", number, namespaces=FLOOD)
            for number, text, other in self._pair_with_others(target)
        ]

    def shuffle(self, target: AttackTarget) -> list[Registration]:
        """Some of the request's longer words in another order each, with words of the registry between."""
        chance = random.Random(target.query.id)
        told = [word for word in dict.fromkeys(words(target.query.text)) if len(word) > _SHORT]
        items = []
        for number in range(CROWD):
            said = chance.sample(told, k=round(_SAID * len(told))) + chance.sample(self._vocabulary[0], k=4)
            chance.shuffle(said)
            items.append(_tool(f"{' '.join(said)} {number}.", number, namespaces=CROWD))
        return items

    def reword_in_a_crowd(self, target: AttackTarget) -> list[Registration]:
        """Rewordings, and many items of a line that hold a word of the request."""
        told = [word for word in content_words(target.query.text) if len(word) > _SHORT] or ["thing"]
        crowd = [
            _tool(f"Helps with {told[n % len(told)]} and {told[(n + 1) % len(told)]}, part {n}.", FLOOD + n,
                  namespaces=FLOOD + CROWD)
            for n in range(CROWD)
        ]  # fmt: skip
        return [*self.reword_in_namespaces(target), *crowd]

    def paste(self, target: AttackTarget) -> list[Registration]:
        [other] = self._others(target, 1)
        return [_tool(other.description[:500], examples=[target.query.text[:2_000]])]

    def imitate_request(self, target: AttackTarget) -> list[Registration]:
        item = {"namespace": "-".join(words(target.query.text)), "name": "run", "kind": "tool"}
        return [Registration.parse({**item, "description": "Does useful things."})]


def _overlap(one: str, other: str) -> float:
    first, second = set(words(one)), set(words(other))
    return len(first & second) / max(1, len(first | second))


def _tool(description: str, number: int = 0, *, namespaces: int = 1, **fields: Any) -> Registration:
    return make_item({"name": f"helper-{number}", "description": description, **fields}, number, namespaces)


def _ask_by_name(target: AttackTarget) -> AttackTarget:
    """The target asked for by two words of its name."""
    text = " ".join(words(split_identifier(target.item.name))[:2])
    return target._replace(query=replace(target.query, text=text))


class Takeover(NamedTuple):
    """An attack on one request: what is registered, and how the target is asked for."""

    register: Callable[[Attacker, AttackTarget], Sequence[Registration]]
    ask: Callable[[AttackTarget], AttackTarget] = lambda target: target


TAKEOVERS: Mapping[str, Takeover] = {
    "20 rewordings, 1 namespace": Takeover(Attacker.reword),
    "20 rewordings, 20 namespaces": Takeover(Attacker.reword_in_namespaces),
    "20 texts of others and a rewording, 20 namespaces": Takeover(Attacker.borrow),
    "60 items of the request's words in another order": Takeover(Attacker.shuffle),
    "20 rewordings and 60 items of a word or two": Takeover(Attacker.reword_in_a_crowd),
    "1 unrelated item, the request as its example": Takeover(Attacker.paste),
    "1 item, its namespace spelled like a request of two words": Takeover(Attacker.imitate_request, ask=_ask_by_name),
}
