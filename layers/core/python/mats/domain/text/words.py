"""Text processing for index and query: splitting names, reading schemas, choosing query terms."""

import functools
import json
import re
import threading
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import snowballstemmer


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_LEVELS = 64  # Maximum depth at which a descriptor is read; deeper text is ignored

LUCENE_STOP_WORDS = word_set(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
    "this to was will with"
)
"""Lucene's English list."""
_FUNCTION_WORDS = word_set(
    "i me my mine we us our you your he his she her them who whom what which when where why how am were been being do "
    "does did doing have has had having can could would should shall may might must please some any all just so than "
    "too very up out about from im ve ll re don here more most other each both once now also like someone only own "
    "same again"
)
STOP_WORDS = LUCENE_STOP_WORDS | _FUNCTION_WORDS
"""Stop words of queries: Lucene's English list and common function words of requests."""
_IN_OTHER_LANGUAGES = word_set(
    "a i in no do me is was an as at be he on or so will all more has dare can just man im ve ll re don"
)
ENGLISH_WORDS = STOP_WORDS - _IN_OTHER_LANGUAGES  # Function words of English that are not words of the languages below
FOREIGN_WORDS = word_set(
    "de der das dem den des ist und ein eine einen einem einer im ins zum zur für fuer mit mein meine meinen "
    "nicht wie wo bitte ich wir alle von auf aus bei nach oder auch sich el los las una del con para por que "
    "qué mi mis como cómo dónde un une le les du au aux est et ce cette ces mon ma mes dans pour avec quel "
    "quelle sur vos nos il lo gli che di mio mia della alla sulla nella um ao dos das meu minha qual é o uma "
    "questo questa een het voor aan naar mijn wat och för att"
)
"""Frequent function words of German, Spanish, French, Italian, Portuguese, Dutch and Swedish."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_SEPARATORS = re.compile(r"[\s_\-./:@#\\]+")
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(
    "[\u3005\u3041-\u3096\u30a1-\u30fa\u30fc-\u30fe\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff]+"
)
"""Runs of letters of Chinese, Japanese and Korean, which are written without spaces or with endings attached."""
_ACCENTS = re.compile("(?<=[A-Za-z])[\u0300-\u036f]+")
_APOSTROPHES = "'’"
_CONTRACTED = re.compile(rf"(?<=\w)[{_APOSTROPHES}](?:s|t|d|m|ll|re|ve)\b", re.IGNORECASE)
"""Contracted function words: without it, `I'm` would search for the letter m."""

_STRUCTURE = word_set(
    "properties items prefixItems anyOf oneOf allOf schema $defs definitions skills tools parameters "
    "additionalProperties inputSchema input_schema"
)
"""Keys of JSON Schema, MCP, A2A and OpenAPI whose values describe parameters."""
_TEXT = word_set("description title enum examples example tags const")
"""Keys whose values are searchable text. If the value is an object, the key is the name of a parameter."""
_SKIPPED = word_set(
    "type format in $ref $schema $id pattern required default minimum maximum minLength maxLength "
    "minItems maxItems uniqueItems nullable id inputModes outputModes url version exclusiveMinimum "
    "exclusiveMaximum readOnly writeOnly deprecated style explode allowEmptyValue"
)
"""Keys whose scalar values are not searchable text."""
_SAYS_NOTHING = word_set(
    "n/a none null string number integer boolean object array str int float bool list dict any true false"
) | {""}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # The categories Cc and Cs of Unicode


def clean(text: str) -> str:
    """The text without control characters, whitespace runs as one space."""
    return " ".join(_CONTROL.sub(" ", text).split())


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, cut at a word boundary if there is one in the last fifth, with an ellipsis if cut."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit * 4 // 5 else cut).rstrip() + "…"


def is_plural(text: str) -> bool:
    """True if a name or a text in lower case seems to end with a plural."""
    return text.endswith("s") and not text.endswith(("ss", "us", "sis"))


def first_sentence(text: str, limit: int = 300) -> str:
    """The first sentence of a text, at most `limit` characters."""
    return clip(re.split(r"(?<=[.!?])\s|(?<=[。！？])", text, maxsplit=1)[0], limit)


def split_identifier(name: str) -> str:
    """The words of a name: `getUser_v2`, `docs/read-file` become `get User v 2`, `docs read file`."""
    return _SEPARATORS.sub(" ", _CAMEL.sub(" ", name)).strip()


class Parameters(NamedTuple):
    """Names of parameters and fields of a schema or descriptor, and its texts, each in document order."""

    names: tuple[str, ...]
    texts: tuple[str, ...]


def read_parameters(*sources: object) -> Parameters:
    """Parameter names and texts of any mix of JSON Schema, MCP, A2A and OpenAPI objects, or JSON in a string."""
    names: dict[str, None] = {}
    texts: list[str] = []
    for source in sources:
        for is_name, text in _walk(_decode(source), 0):
            if is_name:
                names[text] = None
            elif text.strip().lower() not in _SAYS_NOTHING:
                texts.append(text)
    return Parameters(tuple(names), tuple(texts))


def _decode(source: object) -> object:
    if isinstance(source, str):
        try:
            return json.loads(source)
        except (ValueError, RecursionError):
            return source
    return source


def _walk(node: object, level: int, *, named: bool = False) -> Iterator[tuple[bool, str]]:
    """Pairs (is it a name?, text), in document order; in a `named` object every key is a name."""
    if isinstance(node, str):
        yield False, node
    elif level > MAX_LEVELS:
        return
    elif isinstance(node, Mapping):
        for key, value in node.items():
            if named or _names_something(key, value):
                yield True, str(key)
            if named or key not in _SKIPPED or isinstance(value, Mapping):
                if key == "name" and isinstance(value, str):
                    yield True, value
                else:
                    yield from _walk(value, level + 1, named=key == "properties" and not named)
    elif isinstance(node, Sequence):
        for value in node:
            yield from _walk(value, level + 1)


def _names_something(key: str, value: object) -> bool:
    """True if a key is a parameter or field of the capability, not a keyword of the schema language."""
    if key in _STRUCTURE:
        return False
    return isinstance(value, Mapping) or (key != "name" and key not in _TEXT and key not in _SKIPPED)


def every_text(node: object) -> Iterator[str]:
    """Every key and every value of a JSON value, as text, in document order."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield str(key)
            yield from every_text(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from every_text(value)
    else:
        yield str(node)


def first_object(text: str) -> dict[str, Any] | None:
    """The JSON object that begins at the first brace of a text; None if there is none or it is incomplete."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_MOST_BRACES = 64


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a text in order, without those inside others; from the first 64 braces that begin none."""
    decoder, start, failed = json.JSONDecoder(), text.find("{"), 0
    while start >= 0 and failed < _MOST_BRACES:
        try:
            value, end = decoder.raw_decode(text, start)
            yield value
        except (ValueError, RecursionError):
            end, failed = start + 1, failed + 1
        start = text.find("{", end)


def separate_cjk(text: str) -> str:
    """The text with each run of Chinese, Japanese or Korean letters as overlapping pairs, separated by spaces.

    Pairs stand for the words that such a text does not separate: `天气预报` becomes `天气 气预 预报`. The result is the
    same if applied twice, so indexes and queries can rely on it.
    """
    return text if text.isascii() else _CJK.sub(_as_pairs, text)


def _as_pairs(run: re.Match[str]) -> str:
    letters = run[0]
    return f" {' '.join(map(''.join, pairwise(letters))) or letters} "


def words(text: str) -> list[str]:
    """Lower-case words in order; underscores separate. Chinese, Japanese and Korean text is cut as `separate_cjk`."""
    return spelled_words(separate_cjk(text))


def spelled_words(text: str) -> list[str]:
    """Lower-case words in order, as they are separated in the text."""
    return _WORD.findall(text.lower())


SHORTEST_MISSPELT, _LONGEST_MISSPELT = 4, 24  # Letters; a shorter word is near to too many


def has_spelling(word: str) -> bool:
    """True if a word is of letters that may be mistaken, and of a common length."""
    return SHORTEST_MISSPELT <= len(word) <= _LONGEST_MISSPELT and word.isascii() and word.isalpha()


_stemmers = threading.local()
_MEASURE = re.compile("[aeiouy][^aeiouy]")
"""Vowel and consonant: what Porter's rules ask of the letters before an ending."""


@functools.lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The Porter stem, as every index has it: with Porter's later rules for -bly and -logy, and short words whole."""
    if len(word) < 3:
        return word
    if not hasattr(_stemmers, "porter"):
        _stemmers.porter = snowballstemmer.stemmer("porter")  # not safe to share between threads
    found = str(_stemmers.porter.stemWord(word))
    later = any(found.endswith(end) and _MEASURE.search(found, 0, len(found) - len(end)) for end in ("bli", "logi"))
    return found[:-1] if later else found


def may_have_stem(lowered: str, stem: str) -> bool:
    """False for most texts without a word of this stem, without cutting the text, in lower case, into words.

    A word starts with its stem, except for the last letter of the stem (`happy`: `happi`).
    """
    return stem[:-1] in lowered


def index_terms(text: str) -> list[str]:
    """The terms that an index compares, in order: stems of every word, Latin letters without their accents."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    return [stem(word) for word in words(text)]


def query_terms(text: str) -> tuple[str, ...]:
    """The lexical terms of a query: content words, each stem once, in order of appearance.

    A query of function words alone keeps them all, because it would have no terms otherwise. Those of other languages
    are dropped from a query that has two of them, and none of English.
    """
    asked = words(_without_contractions(text)) or words(text)
    foreign = FOREIGN_WORDS.intersection(asked) if ENGLISH_WORDS.isdisjoint(asked) else ()
    dropped = STOP_WORDS | FOREIGN_WORDS if len(foreign) > 1 else STOP_WORDS
    first: dict[str, str] = {}
    for word in [word for word in asked if word not in dropped] or asked:
        first.setdefault(stem(word), word)
    return tuple(first.values())


Pair = tuple[str, str]  # Stems of two words, the first before the second


def content_words(text: str) -> list[str]:
    """Lower-case words in order, without function words, their contractions and single letters."""
    return [word for word in words(_without_contractions(text)) if len(word) > 1 and word not in STOP_WORDS]


def _without_contractions(text: str) -> str:
    has_apostrophe = any(apostrophe in text for apostrophe in _APOSTROPHES)  # far faster than the expression
    return _CONTRACTED.sub(" ", text) if has_apostrophe else text


def stems(text: str) -> set[str]:
    """The stems of a text's content words."""
    return set(map(stem, content_words(text)))


def pairs(text: str) -> frozenset[Pair]:
    """Stems of neighbouring content words: `the balance of a card` has `balance card`, not the reverse."""
    return frozenset(pairwise(map(stem, content_words(text))))


_SPELLED = 0.6
"""Share of pieces that are unknown or one letter of another script from which on a text is spelled, not read."""
_SPLIT, _SPLIT_BESIDE = 1.5, 1.15
"""Pieces per word from which on it is not English: beside letters that English lacks, and beside function words of
another language."""
_UNLIKE_ENGLISH = re.compile(
    r".{4,}(?:en|os|as)|.{3,}(?:e[rl]n|ung|(?<!w)ar|(?<!w)are|ere|ado|ada|ivo|iva|mente|heid|eiro)"
)
"""Words by the endings of verbs and nouns of these languages that are rare in English."""


def is_readable(words: Sequence[str], pieces: Sequence[str]) -> bool:
    """True if a vocabulary reads a text, of these words in lower case.

    `pieces` are those of the vocabulary, without marks of their place; an unknown one is empty.
    """
    spoken, letters = _letters_of(words, pieces)
    if not spoken or not letters:
        return True
    if sum(not piece or (len(piece) == 1 and not piece.isascii()) for piece in letters) >= _SPELLED * len(letters):
        return False
    if not ENGLISH_WORDS.isdisjoint(spoken):
        return True
    split = len(letters) / len(spoken)
    foreign = split >= _SPLIT_BESIDE and not FOREIGN_WORDS.isdisjoint(spoken)
    endings = sum(_UNLIKE_ENGLISH.fullmatch(word) is not None for word in spoken)
    foreign = foreign or (len(spoken) > 1 and endings >= len(spoken) / 3 and set(spoken).isdisjoint(letters))
    return not foreign and (split < _SPLIT or all(map(str.isascii, spoken)))


_TORN = 2.5
"""Pieces per word from which on Latin letters may be no words: judged requests have 1 to 2.3, random letters 2.7 to 5,
and so have some rare words (`webhook`)."""


def has_words(words: Sequence[str], pieces: Sequence[str]) -> bool:
    """False if a text, of these words in lower case, is Latin letters that a vocabulary knows in pieces only.

    `pieces` as for `is_readable`.
    """
    spoken, letters = _letters_of(words, pieces)
    return not spoken or len(letters) < _TORN * len(spoken) or not all(map(str.isascii, spoken))


def _letters_of(words: Sequence[str], pieces: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words, and the pieces, that are letters only; an unknown piece may be."""
    return [word for word in words if word.isalpha()], [piece for piece in pieces if not piece or piece.isalpha()]


def may_be_foreign(words: Collection[str]) -> bool:
    """True if words in lower case are without function words of English, and some are of another language or script."""
    return ENGLISH_WORDS.isdisjoint(words) and (not FOREIGN_WORDS.isdisjoint(words) or not all(map(str.isascii, words)))


_LINK = re.compile(
    r"!?\[([^\[\]]{0,500})\](?:\((?:[^()\s]|\([^()\s]{0,500}\)){0,2000}(?:\s+\"[^\"]{0,200}\")?\)|\[[^\[\]]{0,100}\])"
)
"""A link or image, with its target or the name of its target."""
_MARKS = re.compile(
    r"</?(?:a|b|i|p|br|hr|em|ul|ol|li|td|th|tr|h[1-6]|div|img|pre|sub|sup|code|span|table|strong|details|summary|blockquote)"
    r"(?:\s[^<>]{0,300})?/?>|^[^\S\n]*(?:>|#{1,6}\s)|\[!\w{1,20}\]",
    re.IGNORECASE | re.MULTILINE,
)
"""Tags of HTML, marks of quotes and headings, alerts."""
_REFERRAL = re.compile(
    r"\W{0,4}(?:please )?(?:for (?:more|further|additional) (?:\w+ )?(?:information|details)|(?:to )?learn more|"
    r"read more|more (?:info|information|details)|see (?:also|the (?:docs|documentation)|https?://))\b",
    re.IGNORECASE,
)
"""The start of a sentence that only refers to another document."""
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])[\"')*]{0,3}\s+|(?<=[。！？])|\n\s*\n")
_ENOUGH = 5


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order."""
    return [sentence.strip() for sentence in _SENTENCE_ENDS.split(text) if sentence.strip()]


def plain(text: str) -> str:
    """The text without markup: links keep their words, not their targets.

    Sentences that only refer to another document are left out, unless there is nothing else.
    """
    if "](" in text or "][" in text:
        text = _LINK.sub(r"\1", text)
    text = _MARKS.sub(" ", text)
    parts = _SENTENCE_ENDS.split(text)
    kept = [part for part in parts if not _REFERRAL.match(part)]
    return " ".join(kept) if 0 < len(kept) < len(parts) else text


def opening(text: str, limit: int = 300) -> str:
    """The beginning of a text: whole sentences until they have five content words, at most `limit` characters.

    `Get claim. Returns a claim with its photos. Needs a key.` begins with its first two sentences.
    """
    said: set[str] = set()
    taken: list[str] = []
    for sentence in sentences(text):
        taken.append(sentence)
        said |= stems(sentence)
        if len(said) >= _ENOUGH:
            break
    return clip(" ".join(taken), limit)
