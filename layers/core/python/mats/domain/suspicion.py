"""Text in a registration that is not for those who look for a capability but for the model that judges it.

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
from mats.domain.text import STOP_WORDS, every_text, read_parameters, words

ORDERS = "gives orders to whoever judges it"
RANK = "names its own score or rank"
ROLE = "poses as a message of another role"
FENCE = "holds tags that prompts are built of"
RESULT = "poses as the result of a tool"
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

_OTHERS = "(candidate|capabilit|tool|agent|model|skill|option|result)"
_PATTERNS: Mapping[str, Sequence[str]] = {
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
_COMPILED = {reason: re.compile("|".join(patterns), re.IGNORECASE) for reason, patterns in _PATTERNS.items()}
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
    shown = {form for text in texts for form in _shown(text[:_LONG])}
    reasons = [reason for reason, pattern in _COMPILED.items() if any(map(pattern.search, shown))]
    if _is_stuffed(registration):
        reasons.append(STUFFED)
    hidden = Counter(c for text in texts if not text.isascii() for c in _FLAG.sub("", text) if is_hidden(c))
    if _hides(hidden):
        reasons.append(HIDDEN)
    if hidden.keys() & _BIDI:
        reasons.append(BIDI)
    if sum(map(len, texts)) > _LONG:
        reasons.append(LONG)
    return tuple(reasons)


def _hides(hidden: Counter[str]) -> bool:
    """Whether there are hidden characters that honest text has no use for, or more than it has."""
    selectors = {c: count for c, count in hidden.items() if "\U000e0100" <= c <= "\U000e01ef"}
    if hidden.keys() - selectors.keys() - _ORDINARY - _BIDI:
        return True
    return any(count >= _BROKEN_UP for count in (sum(selectors.values()), *(hidden[c] for c in _WIDTHLESS)))


def _shown(text: str) -> Iterator[str]:
    """The text without what hides in it: on one line as a judge gets it, and line by line, for some begin like a role.

    Spaces are single, so that no pattern has long runs to go through.
    """
    seen = text if text.isascii() else unicodedata.normalize("NFKC", "".join(c for c in text if not is_hidden(c)))
    seen = seen[:_LONG]
    yield visible(seen)
    yield "\n".join(" ".join(line.split()) for line in seen.splitlines() if line.strip())


def _is_stuffed(registration: Registration) -> bool:
    """Whether a word stands out in what is described, or in what is described of the parameters."""
    about = f"{registration.name} {registration.description} {' '.join((*registration.tags, *registration.examples))}"
    parameters = " ".join(read_parameters(registration.input_schema, registration.descriptor).texts)
    return _harps(about, _STUFFED_SHARE) or _harps(parameters, 2 * _STUFFED_SHARE)  # lists of values repeat themselves


def _harps(text: str, share: float) -> bool:
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
