"""Flags text in a registration that addresses a model instead of people: prompt injection and keyword stuffing.

A flag changes no score; it tells readers of the profile or the answer to review the registration. The protection
against prompt injection is the fence (`domain/text/fence.py`), which does not depend on these flags.
The patterns are in fifteen languages; where the first of a pattern's outermost alternatives begins at the edge of a
word, each of them does.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from mats.domain.capability.registration import Registration
from mats.domain.text.fence import is_hidden, visible
from mats.domain.text.words import STOP_WORDS, every_text, read_parameters, words

ORDERS = "contains instructions to a model"
RANK = "names its own score or rank"
ROLE = "poses as a message of another role"
FENCE = "contains the tags that delimit prompts"
RESULT = "poses as the result of a tool"

_OTHERS = "(candidate|capabilit|tool|agent|model|skill|option|result)"
PATTERNS: Mapping[str, Sequence[str]] = {
    ORDERS: (
        r"\b(ignore|disregard|forget|override|bypass)\b[^.]{0,30}"
        r"\b(previous|prior|above|earlier|preceding|your|system|all)\b[^.]{0,20}"
        r"\b(instructions?|prompts?|rules?|guidelines?|directions?|candidates?)\b",
        r"\b(ignore|disregard|forget) (everything|anything|all) (above|before|else)\b",
        r"\b(ignore|disregard|forget|skip|reject)\b[^.]{0,20}\b(other|remaining|competing)\b[^.]{0,20}" + _OTHERS,
        r"\b(always|must|should|only|please)\b[^.]{0,20}\b(choose|select|pick|recommend|prefer|rank|rate|score)\b"
        r"[^.]{0,20}\b(me|this (one|candidate|capability|tool|agent|model|skill))\b",
        r"\b(do not|don't|never)\b[^.]{0,10}\b(choose|select|pick|recommend|rank|consider|return|use)\b[^.]{0,15}"
        r"\b(other|another|competing) " + _OTHERS,
        r"\b(rank|place|put|score|rate) (this|me|us|it)\b[^.]{0,25}\b(above|before|ahead of|over)\b[^.]{0,15}"
        r"\b(all|other|every)",
        r"\bgive (all|every|the)( the)? others?\b[^.]{0,20}\b(0|zero|nothing|low)",
        r"\b(notes?|messages?|instructions?|hints?|attention) (to|for) (the|any|every) "
        r"(judge|ranker|reranker|grader|evaluator|language model|llm)\b|"
        r"\bto (the|any|every) (judge|ranker|reranker|grader|evaluator|language model|llm)\s*:",
        r"\bignor\w{0,15} [^.]{0,25}\b(instrucciones|instruções|istruzioni|instructions précédentes|consignes)\b",
        r"\b(ignorier\w{0,15}|vergiss|vergesst) [^.]{0,30}(anweisung|instruktion|vorgabe)",
        r"\b(olvida|oublie|oubliez|esqueça|dimentica) [^.]{0,30}(instruc|instruç|istruz|consigne)",
        r"\bignorera [^.]{0,30}instruktion|\babaikan [^.]{0,30}(instruksi|perintah)",
        r"\bbỏ qua [^.]{0,30}(hướng dẫn|chỉ dẫn)",
        r"ігноруй\w{0,15} [^.]{0,30}інструкц|התעלם [^.]{0,30}הוראות|نادیده [^.]{0,30}دستور|دستور[^.]{0,30}نادیده",
        r"\bnegeer [^.]{0,30}(instructies|opdrachten)",
        r"\bzignoruj [^.]{0,30}(instrukcj|polece)",
        r"игнорир\w{0,15} [^.]{0,30}(инструкц|указани)",
        r"(忽略|忽視|忽视|无视|無視)[^。]{0,12}(指令|指示|说明|說明|提示|规则|規則)",
        r"(指示|命令|指令|ルール)[^。]{0,6}を?[^。]{0,6}無視",
        r"(지시|지침|명령)[^.]{0,8}무시",
        r"تجاهل [^.]{0,30}(التعليمات|الأوامر)",
        r"निर्देश\w{0,15}[^।]{0,12}(अनदेखा|नज़रअंदाज़)",
        r"talimat\w{0,15}[^.]{0,12}(yok say|görmezden gel)",
        r"\b(elige|escoge|selecciona|escolha|selecione|scegli|seleziona|choisi\w{0,15}) (siempre|sempre|toujours)\b",
        r"\b(siempre|sempre|toujours) (elige|escoge|selecciona|escolha|selecione|scegli|seleziona|choisi\w{0,15})\b",
        r"\bwählen? (sie )?(immer|stets)\b|\b(immer|stets) (mich|dieses?|diese[nr]) [^.]{0,20}wählen\b",
        r"всегда (выбирай|выбирать|выбери)",
        r"(总是|總是|始终|始終|永远|永遠|务必|務必)[^。]{0,6}(选择|選擇|推荐|推薦|选|選)",
        r"(常に|必ず)[^。]{0,12}(選択|選ん|選び|推薦)",
        r"항상[^.]{0,12}(선택|추천)",
    ),
    RANK: (
        r"\b(give|assign|award|rate|score|rank)\b (this|me|us|it|candidate)\b[^.]{0,30}"
        r"\b(100|hundred|maximum|full marks|10/10|highest|first|top|number one|number 1)\b",
        r"\b(relevance|score|rating|ranking)\s*[:=]\s*(100\b(?!\s*%)|10/10)",
        r"\b(i am|this is) (the )?(only|best|correct|right) (answer|choice|candidate|match|result)\b",
        r"(?<!\w)[\"']?s[\"']?\s*:\s*\[\s*\d+\s*,\s*\d+",
    ),
    ROLE: (
        r"<\|?\s*(im_start|im_end|endoftext|begin_of_text|start_header_id|eot_id|system|assistant)\s*\|?>",
        r"\[/?(inst|sys)\]|<</?sys>>",
        r"(^|[\n\"'>])\s*(?-i:system|SYSTEM)\s*(prompt|message)?\s*:\s*\S",
        r"(^|[\n.!?\"'>])\s*(?-i:assistant|ASSISTANT)\s*(message)?\s*:\s*\S",
        r"[\"']role[\"']\s*:\s*[\"'](system|assistant|tool)[\"']",
        r"##\s*(system|assistant|instructions?)\s*:",
        r"\byou are (now|no longer) (a|an|the|in|free|bound)\b",
        r"\b(new|updated|real|actual|secret) (system )?(instructions?|prompt)\s*:",
        r"\b(end|begin|start) of (the )?(system )?(prompt|instructions|candidates|registration)\b",
    ),
    FENCE: (
        r"<\s*/?\s*(candidates|registration)(\s[^<>]{0,40})?>",
        r"<\s*/\s*(candidate|requests?|instructions?|system_prompt|prompt)\s*>",
    ),
    RESULT: (
        r"<\s*/?\s*(tool_?results?|tool_?use|tool_?calls?|function_?(results?|calls?|response))\b",
        r"[\"'](tool_?result|tool_?use|tooluseid|tool_use_id|function_call)[\"']\s*:",
    ),
}


STUFFED = "repeats a word too often (keyword stuffing)"
HIDDEN = "contains hidden characters"
BIDI = "contains bidirectional control characters"
LONG = "is far longer than a description"

_LONG = 20_000
"""Characters of all text together: descriptors of hundreds of operations stay below."""
_STUFFED_SHARE, _STUFFED_COUNT = 0.25, 12
"""A content word is stuffed if it is a quarter of all content words and occurs 12 times."""

_SHORT, _REMEMBERED = 500, 16_384
"""Texts of at most so many characters are remembered, and how many of them: some 8 MB."""

_WORD = r"\b"
_GROUP = re.compile(r"\((?!\?)")
_NO_LATIN = re.compile(r"(?:\\.|[^A-Za-z])*")
"""A pattern without Latin letters is of another script, and in no ASCII text."""


def _any_of(patterns: Sequence[str], flags: re.RegexFlag) -> re.Pattern[str]:
    """One pattern, without the time for capturing; those that begin with a word are tried at words only."""
    whole = [_GROUP.sub("(?:", pattern) for pattern in patterns]
    at_words = "|".join(pattern.removeprefix(_WORD) for pattern in whole if pattern.startswith(_WORD))
    elsewhere = [pattern for pattern in whole if not pattern.startswith(_WORD)]
    return re.compile("|".join([*([f"{_WORD}(?:{at_words})"] if at_words else []), *elsewhere]), flags)


def _any_in_ascii() -> re.Pattern[str]:
    """Every pattern that ASCII text can match, for its lower case: a tenth of the time of ignoring case."""
    every = [pattern.replace("(?-i:", "(?:") for patterns in PATTERNS.values() for pattern in patterns]
    return _any_of([each for each in every if each.isascii() or not _NO_LATIN.fullmatch(each)], re.ASCII)


_COMPILED = {reason: _any_of(patterns, re.IGNORECASE) for reason, patterns in PATTERNS.items()}
_IN_ASCII = _any_in_ascii()
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_WIDTHLESS = frozenset("\u200b\u2060\ufeff\u00ad")
_ORDINARY = _WIDTHLESS | frozenset("\u200c\u200d\ufe0e\ufe0f\u200e\u200f\u061c")
"""Joiners, emoji presentation, soft hyphens and such: common in honest text, but still hidden from models."""
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{2,6}\U000e007f")
"""A region's flag, which is spelled with tags."""
_BROKEN_UP = 12
"""From this count on, zero-width characters are taken as an attempt to split words."""


def suspicions(registration: Registration, written: Sequence[str] = ()) -> tuple[str, ...]:
    """The reasons to review a registration, in a fixed order, each once; empty if there are none.

    `written` is the writer's text, which an injected registration may have influenced.
    """
    texts = [*every_text(registration.item()), *written]
    found = {reason for text in set(texts) for reason in _reasons_in(text)}
    reasons = [reason for reason in _COMPILED if reason in found]
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


def _reasons_in(text: str) -> frozenset[str]:
    """The reasons whose patterns are in a text."""
    return _reasons_of_short(text) if len(text) <= _SHORT else _search(text[:_LONG])


def _search(text: str) -> frozenset[str]:
    forms = set(_visible_forms(text))
    if text.isascii() and not any(_IN_ASCII.search(form.lower()) for form in forms):
        return frozenset()
    return frozenset(reason for reason, pattern in _COMPILED.items() if any(map(pattern.search, forms)))


_reasons_of_short = lru_cache(_REMEMBERED)(_search)
"""The registrations of a document repeat each other: names and descriptions of parameters, schemas, scopes."""


def _has_hidden(hidden: Counter[str]) -> bool:
    """Whether there are hidden characters that honest text does not use, or more than it would use."""
    selectors = {c: count for c, count in hidden.items() if "\U000e0100" <= c <= "\U000e01ef"}
    if hidden.keys() - selectors.keys() - _ORDINARY - _BIDI:
        return True
    return any(count >= _BROKEN_UP for count in (sum(selectors.values()), *(hidden[c] for c in _WIDTHLESS)))


def _visible_forms(text: str) -> Iterator[str]:
    """The text without hidden characters: on one line as a reranker reads it, and line by line.

    Line by line for the patterns of roles. Runs of spaces are collapsed to bound the time of the patterns.
    """
    seen = text if text.isascii() else unicodedata.normalize("NFKC", "".join(c for c in text if not is_hidden(c)))
    seen = seen[:_LONG]
    yield visible(seen)
    if seen.isascii() and seen.isprintable():
        return  # it is one line
    yield "\n".join(" ".join(line.split()) for line in seen.splitlines() if line.strip())


def _is_stuffed(registration: Registration) -> bool:
    """Whether a word is stuffed in the descriptive text, or in the text of the parameters."""
    about = f"{registration.name} {registration.description} {' '.join((*registration.tags, *registration.examples))}"
    parameters = " ".join(read_parameters(registration.input_schema, registration.descriptor).texts)
    # lists of values repeat words, hence the higher share
    return _is_repetitive(about, _STUFFED_SHARE) or _is_repetitive(parameters, 2 * _STUFFED_SHARE)


def _is_repetitive(text: str, share: float) -> bool:
    said = [word for word in words(text) if word not in STOP_WORDS]
    most = Counter(said).most_common(1)
    return bool(most) and most[0][1] >= max(_STUFFED_COUNT, share * len(said))
