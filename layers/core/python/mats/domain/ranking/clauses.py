"""Cut a request for several things at its clauses. Knows English only; text that it does not understand stays whole.

A cut needs a request on both sides: what is only said, not asked, stays with the request before or after it. Nothing is
cut inside quotes, code, brackets and URLs. docs/decisions/0049.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from mats.domain.text.words import content_words, word_set

MOST = 7  # Parts of a request

_ADDING = (
    r"please|kindly|also|then|next|finally|lastly|first(?:ly)?|second(?:ly)?|third(?:ly)?|additionally|furthermore|"
    r"moreover|besides(?:\s+that)?|in\s+addition|after(?:\s+that|wards?)|and|but"
)
_ADDS = rf"(?:(?:{_ADDING})\b,?\s+)*"
_BOUNDARY = re.compile(
    rf"""
      (?P<sentence> (?<=[.?!]) ["'”’)\]]* \s+ {_ADDS} )
    | (?P<item> \n \s* (?: (?:[-*•]|\(?\d{{1,2}}[.)]) \s+ )? {_ADDS} | ; \s* {_ADDS} | \s \(?\d{{1,2}}\) \s+ {_ADDS} )
    | (?P<addition> ,? \s (?:and\s+)? (?:then|after(?:\s+that|wards)|additionally|furthermore|moreover|finally|also|
                                        in\s+addition) \b ,? \s+ {_ADDS} )
    | (?P<noun> ,? \s (?:as\s+well\s+as|plus) \s+ )
    | (?P<weak> , \s+ {_ADDS} | \s and \s+ {_ADDS} )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_VERBS = word_set(
    "find get give calculate compute convert fetch provide recommend suggest retrieve create generate make send "
    "add remove delete buy translate verify determine analyze explain identify tell obtain download upload compare "
    "write read save submit pay summarize extract detect"
)
"""Verbs of requests that are hardly anything else; others show by the word after them: `order a pizza`."""
_NOUNS_TOO = word_set("search list show book check update order open play start stop")
"""Verbs only at the beginning of a sentence: `list files`, but `and list prices`."""
_NO_VERBS = word_set(
    "about above across after against along among around as at before behind below beneath beside between beyond "
    "by despite down during except for from in inside into like near of off on onto out outside over past per "
    "since than through to toward towards under until up upon with within without and or but nor so yet if because "
    "although while when where whether that which who whom whose what why how is are was were be been am do does "
    "did has have had will would can could shall should may might must not no it he she they we you i me him them "
    "us my your their our the a an all both each every either neither some any most many much more few several "
    "only just even then now here there very too such other another today tomorrow yesterday next last including "
    "using"
)
_INFLECTED = ("s", "ed", "ing", "ly")
_VAGUE = word_set(
    "list lists detail details information info data result results answer answers output example examples more"
)
"""Nouns for whatever the request before them is about."""
_NAMELESS = _VERBS | _NOUNS_TOO | _VAGUE
_OBJECTS = word_set(
    "the a an my me our us your his her its it their them this that these those all any some each every new if "
    "whether how what which who where when to up out"
)
"""Words before which a word of none of these classes is a verb."""
_WISH = (
    r"(?:can|could|would|will)\s(?:you|i|we)\b|(?:i|we)(?:\s(?:would)|['’]d)?\s(?:(?:also|then|just|really)\s)*"
    r"(?:need|want|like|love|wish)\b|(?:i['’]m|i\sam|we\sare|we['’]re)\s(?:also\s)?(?:looking\sfor|interested\sin|"
    r"curious|in\sneed)|help\s(?:me|us)\b|let\s(?:me|us)\b|let['’]s\b|it\swould\sbe\s(?:great|helpful|nice)|i\s(?:also|"
    r"wonder)\b"
)
_QUESTION = (
    r"what(?:['’]s)?\b|how\b|why\b|when\s(?:is|are|was|were|does|do|did|will|can)\b|(?:is|are|was|were|does|do|did|has|"
    r"have)\s(?:there|it|the|my|this|that|you|i|we|any|he|she|they)\b"
)
_RELATIVE = r"(?:which|who|whose|where)\b"
"""Questions at the beginning of a sentence; after a comma they belong to what is before it."""
_GREETING = r"(?:(?:hi|hello|hey|ok|okay|so|now)\b,?\s+)*"
_HEAD = re.compile(
    rf"\s*{_GREETING}{_ADDS}(?:(?P<wish>{_WISH}|{_QUESTION})|(?P<relative>{_RELATIVE})"
    r"|(?P<verb>[a-z]+)\b(?:\s+(?P<object>\S+))?)",
    re.IGNORECASE,
)
_LITERAL = re.compile(
    r"```.*?```|`[^`\n]+`|\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|‘[^’\n]{1,200}’(?!\w)|(?<!\w)'[^'\n]{1,200}'(?!\w)"
    r"|\b\w{2,10}://\S+|\b(?:[A-Z]\.)+",
    re.DOTALL,
)
_CLOSED_BY = {")": "(", "]": "[", "}": "{"}
_BARE_VERB = re.compile(r"(?:^|(?:\b(?:to|that|and|can|will)|,)\s+)[a-z]+$")
"""The end of `tools that create`, to which `and delete the user` belongs."""
_BACK = re.compile(r"\b(?:it|its|them|they)\b", re.IGNORECASE)
"""Words by which a sentence may say more of what is before it: `I want it to be blue`."""


class _Span(NamedTuple):
    start: int
    end: int


def cut_at_clauses(text: str) -> tuple[str, ...]:
    """The parts of a request, at most seven, as they are in the text and in its order; one for a single request.

    What is left out between them is conjunctions, words such as `then`, bullets, punctuation and space.
    """
    literal = _literals(text)
    boundaries = [m for m in _BOUNDARY.finditer(text) if not any(m.start() < e and s < m.end() for s, e in literal)]
    ends = [boundary.start() for boundary in boundaries] + [len(text)]
    parts: list[str] = []
    start, asked = 0, _asks(text[: ends[0]], first=True)
    for boundary, end in zip(boundaries, ends[1:], strict=True):
        left, right = text[start : boundary.start()], text[boundary.end() : end]
        cuts = asked and len(parts) < MOST - 1 and _begins_part(left, boundary, right)
        if cuts and _names_something(left) and _names_something(right):
            parts.append(left.strip())
            start = boundary.end()
        else:
            asked = asked or _asks(right)
    return (*parts, text[start:].strip())


_WORDS_OF_TASK = 6


def may_be_task(text: str) -> bool:
    """True if a request is long enough, in content words, for several steps."""
    return len(content_words(text)) >= _WORDS_OF_TASK


def _names_something(clause: str) -> bool:
    """True if a clause can be found on its own: `provide a list` says nothing of what."""
    return not _NAMELESS.issuperset(content_words(clause))


def _literals(text: str) -> Sequence[_Span]:
    """Quotes, code, URLs, initials and brackets, which are never cut."""
    spans = [_Span(*match.span()) for match in _LITERAL.finditer(text)]
    opened: list[int] = []
    for position, letter in enumerate(text):
        if letter in "([{":
            opened.append(position)
        elif opened and text[opened[-1]] == _CLOSED_BY.get(letter):
            spans.append(_Span(opened.pop(), position + 1))
    return spans


def _begins_part(left: str, boundary: re.Match[str], right: str) -> bool:
    """True if what follows a boundary asks for something else than what is before it."""
    if boundary["noun"]:
        return len(content_words(right)) > 1
    if boundary["sentence"]:
        return _asks(right) and (boundary["sentence"].strip()[-1:].isalpha() or not _BACK.search(right))
    if boundary["weak"]:
        return not _BARE_VERB.search(left) and _asks(right, within_sentence=True)
    return _asks(right)


def _asks(clause: str, *, within_sentence: bool = False, first: bool = False) -> bool:
    """True if a clause begins as a request: with a verb, a wish or a question.

    Within a sentence a verb is in lower case, and a relative clause is no question. The `first` clause of a text needs
    no known verb, because nothing is cut before the next one has one.
    """
    head = _HEAD.match(clause)
    if head is None or head["wish"]:
        return head is not None
    if head["relative"]:
        return not within_sentence
    verb, follows = head["verb"], (head["object"] or "").lower().strip(",.;:")
    if within_sentence and not verb.islower():
        return False
    verb = verb.lower()
    if verb in _VERBS or (verb in _NOUNS_TOO and not within_sentence):
        return True
    may_be = verb not in _NO_VERBS and not verb.endswith(_INFLECTED)
    if first and may_be:
        return follows in _OBJECTS or follows not in _NO_VERBS
    return may_be and (follows in _OBJECTS or follows[:1] in tuple("0123456789'\"“"))
