"""Demand: what was asked for and not found, grouped by meaning. docs/decisions/0050."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, Receipt
from mats.domain.ranking.blend import Verdict
from mats.domain.text.words import clip, content_words, stem

REPORTED = 3.0  # Weight of a caller's own word that a request was or was not served
_OF_VERDICT: Mapping[Verdict | None, float] = {Verdict.NONE: 2.0, Verdict.WEAK: 1.0}
LEAST = 3.0  # Sum of weights from which on a group is demand
FEWEST = 2  # Requests of a group, unless a caller says what is missing
_EXAMPLES, _NAME_WORDS, _LACKING = 3, 4, 8
_MOST_CHARACTERS = 200  # Of an example


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, and what is known of how it ended."""

    receipt: Receipt
    events: frozenset[Event] = frozenset()  # The effective event of each result that its caller reported on
    missing: str = ""

    @property
    def text(self) -> str:
        """The missing capability in the words of the caller, else the request; empty if texts are not stored."""
        return self.missing or self.receipt.text

    @property
    def unmet(self) -> float:
        """How much speaks for it that nothing served the request; negative if something did, 0 if nothing is known.

        What the caller reports outweighs the verdict. A filter may be the reason for a verdict, so that of a request
        with filters says nothing.
        """
        if Event.SUCCEEDED in self.events:
            return -REPORTED
        if self.missing or self.events & {Event.FAILED, Event.WRONG}:
            return REPORTED
        if Event.SELECTED in self.events:
            return -REPORTED
        return 0.0 if self.receipt.narrowed else _OF_VERDICT.get(self.receipt.verdict, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The capability that came nearest to a group's requests, and why it did not serve them."""

    id: Id
    answers: int  # Of how many answers to the group it was the best candidate
    relevance: float  # Its mean relevance there, 0 to 1
    lacks: tuple[str, ...] = ()  # Words of the requests that its text has not


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Requests with one meaning that nothing served."""

    name: str  # Words that most of the requests share; empty without texts
    requests: int
    callers: int
    weight: float  # How much speaks for it
    verdicts: Mapping[str, int]
    reported: int  # Requests whose callers reported that nothing served them
    first: str
    last: str
    examples: tuple[str, ...]
    nearest: Nearest | None
    query_ids: tuple[str, ...]


def is_gap(asked: Sequence[Asked], met: float) -> bool:
    """True if unmet requests are demand, beside `met`: the weight of reports that like requests were served."""
    return sum(each.unmet for each in asked) - met >= LEAST and (
        len(asked) >= FEWEST or any(each.missing for each in asked)
    )


def gap_of(asked: Sequence[Asked], met: float, said: Mapping[Id, Collection[str]]) -> Gap:
    """Describe a group; `asked` has the most typical request first, `said` the stems in the texts of capabilities."""
    receipts = [each.receipt for each in asked]
    times = sorted(receipt.at for receipt in receipts)
    shared = _shared_words(asked)
    return Gap(
        name=", ".join(shared[:_NAME_WORDS]),
        requests=len(asked),
        callers=len({receipt.caller for receipt in receipts}),
        weight=round(sum(each.unmet for each in asked) - met, 1),
        verdicts=dict(Counter(str(receipt.verdict) for receipt in receipts if receipt.verdict)),
        reported=sum(each.unmet == REPORTED for each in asked),
        first=times[0],
        last=times[-1],
        examples=tuple(dict.fromkeys(clip(each.text, _MOST_CHARACTERS) for each in asked if each.text))[:_EXAMPLES],
        nearest=_nearest(receipts, shared, said),
        query_ids=tuple(receipt.query_id for receipt in receipts),
    )


def _shared_words(asked: Sequence[Asked]) -> list[str]:
    """Content words by the number of requests that have them, in the spelling that comes first; of two or more half."""
    spelled: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for each in asked:
        mine = [word for word in content_words(each.text) if not word.isdecimal()]
        for word in mine:
            spelled.setdefault(stem(word), word)
        counts.update(set(map(stem, mine)))
    texts = sum(bool(each.text) for each in asked)
    common = sorted(spelled, key=lambda one: -counts[one])
    enough = [one for one in common if 2 * counts[one] >= texts] or common[:_NAME_WORDS]
    return [spelled[one] for one in enough]


def _nearest(receipts: Sequence[Receipt], shared: Sequence[str], said: Mapping[Id, Collection[str]]) -> Nearest | None:
    counts = Counter(receipt.nearest for receipt in receipts if receipt.nearest)
    if not counts:
        return None
    id, answers = min(counts.items(), key=lambda one: (-one[1], one[0]))
    relevances = [receipt.relevance or 0.0 for receipt in receipts if receipt.nearest == id]
    lacks = [word for word in shared if stem(word) not in said[id]] if id in said else []
    return Nearest(id=id, answers=answers, relevance=round(sum(relevances) / answers, 4), lacks=tuple(lacks[:_LACKING]))
