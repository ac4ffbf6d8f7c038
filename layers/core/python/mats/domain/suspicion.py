"""Flags text in a registration that addresses the model that reads it, not the people who look for a capability.

A flag changes no score: it says to whoever reads the profile or the answer what to look at. What keeps such text from
working is the fence (`domain/fence.py`), which does not depend on anything found here.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from mats.domain.capability import Id, parts
from mats.domain.fence import is_hidden, visible
from mats.domain.registration import Registration
from mats.domain.suspicion_patterns import PATTERNS
from mats.domain.text import STOP_WORDS, every_text, read_parameters, words

STUFFED = "repeats a word to be found by it"
HIDDEN = "holds characters that nobody sees"
BIDI = "turns the direction of reading"
LONG = "is far longer than a description"

_LONG = 20_000
"""Characters of all text together: descriptors of hundreds of operations stay below."""
_STUFFED_SHARE, _STUFFED_COUNT = 0.25, 12
"""A content word that is a quarter of all of them, and is there a dozen times."""
_COPIED = 60
"""Characters of description from which on an equal one is no coincidence."""

_COMPILED = {reason: re.compile("|".join(patterns), re.IGNORECASE) for reason, patterns in PATTERNS.items()}
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_WIDTHLESS = frozenset("\u200b\u2060\ufeff\u00ad")
_ORDINARY = _WIDTHLESS | frozenset("\u200c\u200d\ufe0e\ufe0f\u200e\u200f\u061c")
"""Joiners, emoji presentation, soft hyphens and such: common in honest text; never shown to a model all the same."""
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{2,6}\U000e007f")
"""A region's flag, which is spelled with tags."""
_BROKEN_UP = 12
"""So many characters without width are there to break words up."""


def suspicions(registration: Registration, written: Sequence[str] = ()) -> tuple[str, ...]:
    """Why a registration deserves a second look, if it does; in a fixed order, each reason once.

    Args:
        registration: What the owner wrote.
        written: What a writer made of it: a text that steers the writer can put its words there.
    """
    texts = [*every_text(registration.item()), *written]
    shown = {form for text in texts for form in _visible_forms(text[:_LONG])}
    reasons = [reason for reason, pattern in _COMPILED.items() if any(map(pattern.search, shown))]
    if _is_stuffed(registration):
        reasons.append(STUFFED)
    hidden = Counter(c for text in texts if not text.isascii() for c in _FLAG.sub("", text) if is_hidden(c))
    if _has_hidden(hidden):
        reasons.append(HIDDEN)
    if hidden.keys() & _BIDI:
        reasons.append(BIDI)
    if sum(map(len, texts)) > _LONG:
        reasons.append(LONG)
    return tuple(reasons)


def _has_hidden(hidden: Counter[str]) -> bool:
    """Whether there are hidden characters that honest text has no use for, or more than it has."""
    selectors = {c: count for c, count in hidden.items() if "\U000e0100" <= c <= "\U000e01ef"}
    if hidden.keys() - selectors.keys() - _ORDINARY - _BIDI:
        return True
    return any(count >= _BROKEN_UP for count in (sum(selectors.values()), *(hidden[c] for c in _WIDTHLESS)))


def _visible_forms(text: str) -> Iterator[str]:
    """The text without hidden characters: on one line as a reranker reads it, and line by line.

    The latter because some lines begin like a role. Spaces are single, so that no pattern has long runs to go through.
    """
    seen = text if text.isascii() else unicodedata.normalize("NFKC", "".join(c for c in text if not is_hidden(c)))
    seen = seen[:_LONG]
    yield visible(seen)
    yield "\n".join(" ".join(line.split()) for line in seen.splitlines() if line.strip())


def _is_stuffed(registration: Registration) -> bool:
    """Whether a word stands out in what is described, or in what is described of the parameters."""
    about = f"{registration.name} {registration.description} {' '.join((*registration.tags, *registration.examples))}"
    parameters = " ".join(read_parameters(registration.input_schema, registration.descriptor).texts)
    return _is_repetitive(about, _STUFFED_SHARE) or _is_repetitive(
        parameters, 2 * _STUFFED_SHARE
    )  # lists of values repeat themselves


def _is_repetitive(text: str, share: float) -> bool:
    said = [word for word in words(text) if word not in STOP_WORDS]
    most = Counter(said).most_common(1)
    return bool(most) and most[0][1] >= max(_STUFFED_COUNT, share * len(said))


def copies(descriptions: Mapping[Id, str]) -> dict[Id, str]:
    """Why a capability looks like a copy of another of these: word for word its description, in another namespace.

    Nobody can tell here which was first, so both are named.
    """
    alike: dict[str, list[Id]] = {}
    for id, description in descriptions.items():
        text = visible(description).casefold()
        if len(text) >= _COPIED:
            alike.setdefault(text, []).append(id)
    return {
        id: f"has the description of {other}, word for word"
        for same in alike.values()
        for id in same
        if (other := next((twin for twin in same if parts(twin)[0] != parts(id)[0]), None))
    }
