"""Attacks by new registrations on one request each, by somebody who knows it and the encoder.

Beside older capabilities, and beside a rated one of the same day.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from experiments.attacks.registry import AttackedRegistry, measure_answers
from experiments.attacks.scene import SEED, AttackTarget, Wave
from experiments.attacks.table import FLOOD
from mats.domain.capability.registration import Registration
from mats.domain.text.words import STOP_WORDS, content_words, split_identifier, words
from mats.ports import Encoder

LATER = timedelta(days=40)  # Between the registrations and those of attackers
RATED = 80
_VOCABULARY, _NEAR, _TRIED = 3_000, 8, 120  # Words of a registry, of these the nearest of one, and rewordings tried
_MOST_ALIKE, _MOST_REPEATED = 0.58, 0.75
"""Word overlap of two rewordings, and share of the request's words, that no limit by text sees."""
_ROUNDS, _PHRASES = 10, 8  # Insertions, and phrases tried for each


@dataclass(frozen=True)
class Rewriter:
    """Rewrites requests with near words of a registry, as an encoder measures them."""

    encoder: Encoder
    registrations: Sequence[Registration]

    @cached_property
    def _near(self) -> Callable[[str], list[str]]:
        counts = Counter(w for item in self.registrations for w in words(item.description) if w not in STOP_WORDS)
        known = [word for word, _ in counts.most_common(_VOCABULARY) if word.isalpha()]
        vectors = self._encode(known)

        def near(word: str) -> list[str]:
            return [known[at] for at in np.argsort(-(vectors @ self._encode([word])[0]))[:_NEAR]]

        return near

    def _encode(self, texts: Sequence[str]) -> Any:
        return np.array([np.asarray(vector, np.float32) for vector in self.encoder.encode_documents(texts)])

    def rewordings(self, request: str, most: int = FLOOD) -> list[str]:
        """Of random rewordings the nearest that repeat neither the request nor each other."""
        chance, own = random.Random(SEED), set(content_words(request))
        near = {word: self._near(word) for word in own}
        tried = {" ".join(chance.choice([word, *near.get(word, ())]) for word in words(request)) for _ in range(_TRIED)}
        texts = sorted(text for text in tried if len(own & set(words(text))) < _MOST_REPEATED * max(4, len(own)))
        if not texts:
            return []
        cosines = self._encode(texts) @ np.asarray(self.encoder.encode_query(request), np.float32)
        chosen: list[str] = []
        for text in (texts[at] for at in np.argsort(-cosines)):
            if len(chosen) < most and all(_overlap(text, other) < _MOST_ALIKE for other in chosen):
                chosen.append(text)
        return chosen


def _overlap(one: str, other: str) -> float:
    first, second = set(words(one)), set(words(other))
    return len(first & second) / max(1, len(first | second))


def _tool(number: int, description: str, *, namespaces: int = 1, **fields: Any) -> Registration:
    namespace = "evil.example" if namespaces == 1 else f"evil-{number}.example"
    item = {"namespace": namespace, "name": f"helper-{number}", "kind": "tool", "description": description}
    return Registration.parse({**item, **fields})


Register: TypeAlias = Callable[[AttackTarget, AttackedRegistry, Rewriter], Sequence[Registration]]


def _reword(target: AttackTarget, _: AttackedRegistry, rewriter: Rewriter) -> list[Registration]:
    return [_tool(n, f"{text}.") for n, text in enumerate(rewriter.rewordings(target.query.text[:300]))]


def _others(target: AttackTarget, registry: AttackedRegistry, count: int) -> list[Registration]:
    """Capabilities of other tasks, with a description."""
    chance = random.Random(target.query.id)
    pool = [item for item in registry.registrations if len(item.description) > 60]
    return chance.choices([item for item in pool if item.id not in target.query.relevant], k=count)


def _reword_in_namespaces(target: AttackTarget, registry: AttackedRegistry, rewriter: Rewriter) -> list[Registration]:
    texts = rewriter.rewordings(target.query.text[:300])
    return [
        _tool(
            n,
            f"{text}.",
            namespaces=FLOOD,
            tags=sorted(content_words(other.name))[:3],
            provider=f"Provider {n}",
            input_schema={
                "type": "object",
                "properties": {f"{w}_{n}": {"type": "string"} for w in words(other.name)[:3]},
            },
        )
        for n, (text, other) in enumerate(zip(texts, _others(target, registry, len(texts)), strict=True))
    ]


def _borrow(target: AttackTarget, registry: AttackedRegistry, rewriter: Rewriter) -> list[Registration]:
    texts = rewriter.rewordings(target.query.text[:300])
    others = _others(target, registry, len(texts))
    return [
        _tool(n, f"{other.description[:200]} {text}.", namespaces=FLOOD)
        for n, (text, other) in enumerate(zip(texts, others, strict=True))
    ]


def _paste(target: AttackTarget, registry: AttackedRegistry, _: Rewriter) -> list[Registration]:
    [other] = _others(target, registry, 1)
    return [_tool(0, other.description[:500], examples=[target.query.text[:2_000]])]


def _insert_phrases(target: AttackTarget, registry: AttackedRegistry, _: Rewriter) -> list[Registration]:
    """An unrelated item, with the phrases of request and target inserted that lift it most, until it is first."""
    chance, [other] = random.Random(target.query.id), _others(target, registry, 1)
    told, said = words(target.query.text)[:40] + words(target.item.description)[:60], other.description[:300]
    for _round in range(_ROUNDS):
        starts = [chance.randrange(max(1, len(told) - 3)) for _ in range(_PHRASES)]
        tries = [_tool(0, f"{said} {' '.join(told[at : at + 4])}.") for at in starts]
        scored = []
        for item in tries:
            with registry.with_items([item], {}, time=registry.attacked_at):
                ranked = registry.shortlist(target.query.text).ranked
            score = next((result.score for result in ranked if result.id == item.id), -1.0)
            first = bool(ranked) and ranked[0].id == item.id
            scored.append((first, score, item))
        best = max(scored, key=lambda one: one[:2])
        said = best[2].description
        if best[0]:
            break
    return [_tool(0, said)]


def _imitate_request(target: AttackTarget, _: AttackedRegistry, __: Rewriter) -> list[Registration]:
    item = {"namespace": "-".join(words(target.query.text)), "name": "run", "kind": "tool"}
    return [Registration.parse({**item, "description": "Does useful things."})]


def _copy(target: AttackTarget, _: AttackedRegistry, __: Rewriter) -> list[Registration]:
    return [_tool(0, target.item.description)]


def _ask_by_name(target: AttackTarget) -> AttackTarget:
    """The target asked for by two words of its name."""
    text = " ".join(words(split_identifier(target.item.name))[:2])
    return replace(target, query=replace(target.query, text=text))


class Takeover(NamedTuple):
    """An attack on one request: what is registered, how the target is asked for, and when, if at a time of its own."""

    register: Register
    ask: Callable[[AttackTarget], AttackTarget] = lambda target: target
    lag: timedelta | None = None


TAKEOVERS: Mapping[str, Takeover] = {
    "20 rewordings, 1 namespace": Takeover(_reword),
    "20 rewordings, 20 namespaces": Takeover(_reword_in_namespaces),
    "20 texts of others and a rewording, 20 namespaces": Takeover(_borrow),
    "1 unrelated item, the request as its example": Takeover(_paste),
    "1 unrelated item, phrases inserted": Takeover(_insert_phrases),
    "1 item, its namespace spelled like a request of two words": Takeover(_imitate_request, ask=_ask_by_name),
    "1 copy, registered an hour before": Takeover(_copy, lag=timedelta(hours=-1)),
}


def takeovers(
    registry: AttackedRegistry, rewriter: Rewriter, names: Sequence[str] = tuple(TAKEOVERS)
) -> Iterator[dict[str, Any]]:
    """Each attack on each target: beside older capabilities, after the target was rated 80, and before that.

    The last two within an hour of its registration.

    Of the targets that are `found` without the attack, `gone` are no candidates under it; of `honest_flagged` requests
    a relevant capability has a reason for caution; the other measures are `measure_answers`.
    """
    start = datetime.fromisoformat(registry.local.clock.now())
    for way, lag in {"older": LATER, "rated": timedelta(hours=1), "rated later": timedelta(0)}.items():
        registry.assign({} if way == "older" else {target.item.id: RATED for target in registry.targets})
        for name in names:
            observed, attack = [], TAKEOVERS[name]
            registry.attacked_at = (start + (lag if attack.lag is None else attack.lag)).isoformat()
            for target in map(attack.ask, registry.targets):
                items = attack.register(target, registry, rewriter)
                observed += registry.observe(Wave(items=items, targets=[target], at=registry.attacked_at))
            ids = [target.item.id for target in registry.targets]
            found = [(id, one) for id, one in zip(ids, observed, strict=True) if id in one.before]
            gone = sum(id not in one.ranked for id, one in found)
            accused = sum(not one.relevant.isdisjoint(one.flagged) for one in observed)
            counts = {"found": len(found), "gone": gone, "honest_flagged": accused}
            yield {"attack": name, "beside": way, **counts, **measure_answers(observed)}
