"""Cut a request for several things at its clauses. Knows English only; text that it does not understand stays whole.

A cut needs a request on both sides: what is only said, not asked, stays with the request before or after it. Nothing is
cut inside quotes, code, brackets and URLs. docs/decisions/0049.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from mats.domain.text.words import content_words

MOST = 7
"""Parts of a request."""


_FEWEST_WORDS = 2
"""Content words of a part; what has fewer cannot be found on its own."""

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
_SAYS_ALSO = re.compile(rf"\b(?:{_ADDING}|as well|too)\b", re.IGNORECASE)
_SAYS_ALSO_WITHIN = 40
"""Characters after the end of a sentence in which a word such as `also` tells that the next one asks for more."""

_AMBIGUOUS = frozenset(
    (
        "order name record share log rate review list report plan store post message mail email call display schedule "
        "book play score track rank sort test mark pick sign search update open filter split return change move use "
        "help start stop present plot draw estimate transfer deposit exchange format export import print register run "
        "show set cut build design match process contact address copy transcript answer file view visit select average "
        "count sum factor look trade charge purchase request refund reply forward block quote ship fix repair label "
        "stream scale push pull alert archive train"
    ).split()
)
"""Verbs of requests that are nouns as well."""
_VERBS = frozenset(
    (
        "find get tell give calculate compute check convert fetch provide recommend suggest retrieve create generate "
        "make send add remove delete modify cancel buy translate verify determine analyze analyse explain identify see "
        "know inquire query obtain download upload close pause compare predict evaluate solve perform execute write "
        "read save apply submit pay withdraw reserve organize organise prepare arrange confirm notify remind inform "
        "publish invite monitor follow summarize summarise extract detect classify recognize discover explore learn "
        "turn enable disable switch adjust increase decrease reduce multiply divide subtract simplify visualize "
        "visualise describe define validate include assist guide navigate locate choose edit rename merge join combine "
        "replace insert mention ensure exclude parse decode encode encrypt decrypt shorten compile install deploy "
        "configure connect backup restore investigate assess examine ask highlight let allow take bring deliver "
        "simulate rent subscribe unsubscribe lock unlock mute crop resize rotate compress attach approve reject assign "
        "warn transcribe annotate scrape crawl render sync restart upgrade"
    ).split()
)
_VAGUE = frozenset(
    "list lists detail details information info data result results answer answers output example examples more".split()
)
"""Nouns for whatever the request before them is about."""
_NAMELESS = _VERBS | _VAGUE
_OBJECTS = frozenset(
    (
        "the a an my me our us your his her its their it them this that these those all any some each every if whether "
        "how what which who where when for to him you out up on off"
    ).split()
)
"""Words after which an ambiguous word before them is a verb: `order a pizza`, not `order numbers`."""
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
_LAST_WORD = re.compile(r"([a-z]+)\W*$", re.IGNORECASE)


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
    start, asked = 0, _asks(text[: ends[0]])
    for boundary, end in zip(boundaries, ends[1:], strict=True):
        left, right = text[start : boundary.start()], text[boundary.end() : end]
        cuts = asked and len(parts) < MOST - 1 and _begins_part(left, boundary, right)
        if cuts and _names_something(left) and _names_something(right):
            parts.append(left.strip())
            start = boundary.end()
        else:
            asked = asked or _asks(right)
    return (*parts, text[start:].strip())


def _names_something(clause: str) -> bool:
    """Whether a clause can be found on its own: `provide a list` says nothing of what."""
    words = content_words(clause)
    return len(words) >= _FEWEST_WORDS and not _NAMELESS.issuperset(words)


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
    """Whether what follows a boundary asks for something else than what is before it."""
    if boundary["noun"]:
        return True
    if boundary["sentence"]:
        more = boundary["sentence"] + right[:_SAYS_ALSO_WITHIN]
        return _SAYS_ALSO.search(more) is not None and _asks(right)
    if boundary["weak"]:
        before = _LAST_WORD.search(left)
        return not (before and _is_verb_form(before[1])) and _asks(right, within_sentence=True)
    return _asks(right)


def _asks(clause: str, *, within_sentence: bool = False) -> bool:
    """Whether a clause begins as a request: with a verb, a wish or a question.

    Within a sentence a verb is in lower case, an ambiguous one has an object, and a relative clause is no question.
    """
    head = _HEAD.match(clause)
    if head is None or head["wish"]:
        return head is not None
    if head["relative"]:
        return not within_sentence
    verb, follows = head["verb"], (head["object"] or "").lower().strip(",.;:")
    if within_sentence and not verb.islower():
        return False
    if verb.lower() in _AMBIGUOUS:
        return not within_sentence or follows in _OBJECTS or follows[:1] in "0123456789'\"“"
    return verb.lower() in _VERBS


def _is_verb_form(word: str) -> bool:
    """Whether a word is a verb of requests, as in `create and delete`, `reads and summarizes`."""
    forms = {word.lower(), word.lower().removesuffix("s"), word.lower().removesuffix("es")}
    return not forms.isdisjoint(_VERBS)
