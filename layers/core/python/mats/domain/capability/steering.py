"""Finds text that steers the model that reads it, with a linear classifier over words and their classes: 0087.

Each word becomes the letter of its class (`steering.toml`, with the words of a dozen languages; paths, addresses and
identifiers by their shape). What is scored is a window of one to three sentences: its words, their neighbours and the
pairs of their classes, each with the weight of its hash (Weinberger et al., "Feature hashing for large scale multitask
learning", 2009). `experiments/calibration/scanner.py` fits the weights. What a security tool quotes as an example of an
attack is left out. Tables and weights are read at the first text: a search needs none of them.
"""

import base64
import codecs
import html
import re
import struct
import tomllib
import urllib.parse
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import combinations, pairwise
from math import sqrt
from typing import NamedTuple

from mats.domain.text.fence import skeleton

ORDERS = "contains instructions to a model"
EXFILTRATION = "asks for private data to be passed on"
DIRECTION = "directs the use of other tools"
DEED = "does what its name does not say"
PAYLOAD = "hides instructions or code in an encoding or a comment"

REASONS = (ORDERS, EXFILTRATION, DIRECTION, DEED, PAYLOAD)
"""The reasons that a window can be given, in the order of their weights."""


class Found(NamedTuple):
    reason: str
    start: int
    end: int


_SPACED = re.compile(r"[\u0900-\u097f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_PRIVATE = (
    r"~/(?:\.\w|documents\b|desktop\b|library\b|wallet)(?:[\w./*-]*\w)?|"
    r"(?:/root/|/home/\w+/|%\w+%\\|\$home/)?(?:\.(?:ssh|aws|kube|gnupg|netrc|npmrc|pypirc|gitconfig|git-credentials)\b|"
    r"\.\w+_history\b|\bid_(?:rsa|ed25519|dsa|ecdsa)\b|\bauthorized_keys\b|/etc/(?:passwd|shadow|sudoers)\b|"
    r"/proc/self/environ|"
    r"\bwallet\.dat\b|\bmcp(?:_config)?\.json\b|\b\w{0,20}desktop_config\.json\b)(?:[\w./*-]*\w)?|"
    r"(?<![\w/])\.env\b(?!\.(?:example|sample))"
)
_ADDRESS = (
    r"(?:https?|wss?|ftp)://\S+|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}|\+\d[\d ]{7,}\d|"
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b0x[0-9a-f]{20,}|"
    r"\b[\w-]{1,63}\.example\b|\b[a-z]{2}\d\d(?: ?\d{4}){3,}\b"
)


@cache
def _grammar() -> tuple[Mapping[str, str], re.Pattern[str]]:
    """The classes of words in `steering.toml`, and the pattern of a token."""
    tables = tomllib.loads(files(__package__).joinpath("steering.toml").read_text(encoding="utf-8"))
    class_of = {word: letter for letter, those in tables["words"].items() for word in those.split()}
    unspaced = sorted(filter(_SPACED.search, class_of), key=len, reverse=True)
    return class_of, _token(tables["phrases"], unspaced)


def _token(phrases: Mapping[str, str], unspaced: Iterable[str]) -> re.Pattern[str]:
    """A pattern of one token: the group of the match is its class, or `space`, `stop`, `pause`, `cjk` or `word`."""
    return re.compile(
        "|".join((
            r"(?P<space> +)", rf"(?P<F>{_PRIVATE})", rf"(?P<L0>{_ADDRESS})",
            r"\b(?=[^\W\d_])(?:" + "|".join(f"(?P<{letter}>{each})" for letter, each in phrases.items()) + r")(?!\w)",
            r"(?P<K0>\b[a-z][a-z0-9]*_(?:[a-z0-9]+_){0,6}(?:key|token|secret|password|credentials)\b)",
            r"(?P<X>`[\w./-]{3,}`|\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b)",
            r"(?P<stop>[.!?](?=[\s\"')\]>*}]|$)|[。！？।\n])",
            r"(?P<pause>[,:;()\[\]<>\"“”{}*>|、，：；-]|(?<!\w)'|'(?!\w))", rf"(?P<cjk>{'|'.join(unspaced)})",
            r"(?P<word>(?:[^\W\d_\u3040-\u30ff\u3400-\u9fff]+['’-]?)+)",
        ))
    )  # fmt: skip


class _Word(NamedTuple):
    letter: str  # Of its class, `.` without one
    text: str
    start: int
    end: int


def _sentences(text: str) -> Iterator[list[_Word]]:
    """The words of each sentence; one of more than `_LONGEST` words comes in overlapping parts."""
    class_of, pattern = _grammar()
    sentence: list[_Word] = []
    for token in pattern.finditer(text.lower()):
        kind, word = token.lastgroup or "", token[0]
        if kind == "stop" or len(sentence) == _LONGEST:
            if sentence:
                yield sentence
            sentence = [] if kind == "stop" else sentence[_LONGEST // 2 :]
        if kind in ("space", "stop", "pause"):
            continue
        if kind == "K0":
            letter = "K" if text[token.start() : token.end()].isupper() else "X"
        elif kind in ("word", "cjk"):
            letter = class_of.get(word.replace("’", "'").strip("'-"), ".")
        else:
            letter = class_of.get(word.strip("`"), kind[0]) if kind == "X" else kind[0]
        if letter not in "_,":
            sentence.append(_Word(letter, f"<{letter}>" if letter in "FL" else word, *token.span()))
    if sentence:
        yield sentence


_LONGEST = 40
_REACH = 8  # Words with a class among which pairs are formed
SLOTS, SLOTS_OF_REASON = 1 << 20, 1 << 14  # Weights of the classifier, and of each reason


def _slot(feature: str) -> int:
    return zlib.crc32(feature.encode()) % SLOTS


_slot_of_pair = cache(_slot)  # of two letters: some thousands


class Window(NamedTuple):
    """One to three sentences: the classes of their words, the slots of their features, and their place in the text."""

    letters: str
    slots: frozenset[int]
    start: int
    end: int


def windows_of(text: str) -> Iterator[Window]:
    """Every window of a visible text; none of a single word."""
    if text.isascii() and " " not in text.strip():
        return
    sentences = list(_sentences(text))
    for first in range(len(sentences)):
        words: list[_Word] = []
        for sentence in sentences[first : first + _SENTENCES]:
            words = [*words, _BETWEEN, *sentence] if words else sentence
            letters = "".join(word.letter for word in words)
            yield Window(letters, frozenset(_slots_of(words)), words[0].start, words[-1].end)


_SENTENCES, _BETWEEN = 3, _Word("|", "|", 0, 0)


def _slots_of(words: list[_Word]) -> set[int]:
    """Words, their beginnings and neighbours, neighbours by class, pairs of classes, and those in order and near."""
    texts = ["^", *(word.text for word in words), "$"]
    classes = ["^", *(word.text[:5] if word.letter == "." else word.letter for word in words), "$"]
    slots = {_slot(f"u{text}") for text in texts}
    slots.update(_slot(f"p{text[:4]}") for text in texts)
    slots.update(_slot(f"b{text} {after}") for text, after in pairwise(texts))
    slots.update(_slot(f"l{one} {after}") for one, after in pairwise(classes))
    letters = [word.letter for word in words if word.letter != "."]
    for at, one in enumerate(letters):
        slots.update(_slot_of_pair(f"o{one}{after}") for after in letters[at + 1 : at + 1 + _REACH])
    slots.update(_slot_of_pair(f"c{one}{other}") for one, other in combinations(sorted(set(letters)), 2))
    return slots


class Weights(NamedTuple):
    """`steering.weights`, compressed: a float32, `SLOTS` int8, and `SLOTS_OF_REASON` int8 of each of `REASONS`."""

    threshold: float
    of_slot: "array[int]"
    of_reason: "tuple[array[int], ...]"

    @classmethod
    def of(cls, stored: bytes) -> "Weights":
        read = zlib.decompress(stored)
        (threshold,), weights = struct.unpack_from("<f", read), array("b", read[4:])
        starts = range(SLOTS, len(weights), SLOTS_OF_REASON)
        return cls(threshold, weights[:SLOTS], tuple(weights[at : at + SLOTS_OF_REASON] for at in starts))

    def score(self, window: Window) -> float:
        """The sum of weights over the root of their count; above `threshold` the window steers."""
        return sum(map(self.of_slot.__getitem__, window.slots)) / sqrt(len(window.slots))

    def reason(self, window: Window) -> str:
        """The reason with the greatest sum of weights."""
        slots = [slot % SLOTS_OF_REASON for slot in window.slots]
        sums = [sum(map(weights.__getitem__, slots)) for weights in self.of_reason]
        return REASONS[sums.index(max(sums))]


@cache
def _weights() -> Weights:
    return Weights.of(files(__package__).joinpath("steering.weights").read_bytes())


_OVERRIDE = re.compile(r"(?:^|[|&WYM])(?:I[^|]{0,2}P[^|]{0,2}R|N[^|]{0,2}T[^|]{0,2}U)")
"""Imperatives to set aside what was said before, and to tell nobody: they are never left to weights."""


def steering_in(text: str) -> list[Found]:
    """Passages of a visible text that steer a model, the shortest first; none overlaps another."""
    weights, found = _weights(), list[Found]()
    steering = [
        window
        for window in windows_of(text)
        if _OVERRIDE.search(window.letters) or weights.score(window) > weights.threshold
    ]
    for window in sorted(steering, key=lambda window: window.end - window.start):
        if all(window.end <= other.start or other.end <= window.start for other in found):
            found.append(Found(weights.reason(window), window.start, window.end))
    return found


_MENTIONS = re.compile(
    r"\b(?:(?:detect|scan|audit|check|find|block|prevent|flag|explain|document|classifie|refuse|catche|"
    r"recogni[sz]e|look|"
    r"test|generate|remove|analy[sz]e|write)(?:s|ing|or|er|ion)|phrases?|strings?|typical inputs|shows how|"
    r"(?:attack|inject|jailbreak|malware|phish|poison|adversar)\w*)\b(?P<between>[^.!?\n]{0,100}?)"
    r"(?P<quoted>\"[^\"\n]{3,200}\"|“[^”\n]{3,200}”|(?<!\w)'[^'\n]{3,200}'(?!\w))",
    re.IGNORECASE,
)
"""A quotation of what a tool says it looks for."""
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)'[^'\n]*'(?!\w)")
_TO_THE_READER = re.compile(
    r"\b(?:you|must|should|always|before (?:\w+ing|each|every|any|use)|please|obey)\b", re.IGNORECASE
)


def without_mentions(text: str) -> str:
    """The text with quoted examples of attacks blanked, in sentences that ask nothing of their reader."""

    def blank(found: re.Match[str]) -> str:
        after = _QUOTED.sub("", text[found.end() : found.end() + 200])[:80]
        if _TO_THE_READER.search(f"{found['between']} {after}"):
            return found[0]
        start = found.start("quoted") - found.start()
        return found[0][:start] + "x" * len(found["quoted"])

    for _ in range(_QUOTED_IN_A_ROW):
        after = _MENTIONS.sub(blank, text)
        if after == text:
            break
        text = after
    return text


_QUOTED_IN_A_ROW = 4

_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX = re.compile(r"(?:\b|(?<=0x))(?:[0-9a-fA-F]{2}){16,}\b")
_ESCAPED = re.compile(r"(?:%[0-9a-fA-F]{2}){4,}|(?:\\u[0-9a-fA-F]{4}){4,}|(?:\\x[0-9a-fA-F]{2}){4,}|&#x?[0-9a-fA-F]+;")
_SPELLED = re.compile(
    r"(?:(?<!\w)[^\W_](?:[ ._*-]{1,3}(?=[^\W_](?![^\W_])))){5,}[^\W_](?!\w)|(?<!\w)(?:\w[._*-]){3,}\w(?!\w)"
)
_LEET = re.compile(r"[a-z](?=[013457@$])[^a-z]+[a-z]|\b[013457@$][a-z]{2,}")
_TURNED = ("rot13", "rot-13", "caesar", "cipher", "backward", "reverse", "right to left")
_AS_LETTERS = str.maketrans("013457@$", "oieastas")
_LETTERS_MIXED = re.compile(r"[A-Za-z](?=[\u0370-\u052f\u13a0-\u13ff])|[\u0370-\u052f\u13a0-\u13ff](?=[A-Za-z])")


def decoded_forms(text: str) -> Iterator[tuple[str, int, int]]:
    """Readings by a model of encoded, spelled or turned parts of a text, each with that part's place in it."""
    for found in _BASE64.finditer(text):
        yield from _if_text(found, _from_base64(found[0]))
    for found in _HEX.finditer(text):
        yield from _if_text(found, bytes.fromhex(found[0]).decode("utf-8", "ignore"))
    whole, lowered = (0, len(text)), text.lower()
    if any(mark in text for mark in ("%", "\\u", "\\x", "&#")) and (escaped := _ESCAPED.search(text)):
        plain = html.unescape(urllib.parse.unquote(text))
        yield (
            re.sub(r"\\[ux]([0-9a-fA-F]{4}|[0-9a-fA-F]{2})", lambda code: chr(int(code[1], 16)), plain),
            escaped.start(),
            len(text),
        )
    if spelled := _SPELLED.search(text):
        yield _join_spelled(text), spelled.start(), len(text)
    if len(_LEET.findall(lowered)) > 2:
        yield lowered.translate(_AS_LETTERS), *whole
    if any(word in lowered for word in _TURNED):
        yield codecs.decode(text, "rot13"), *whole
        yield text[::-1], *whole
    if not text.isascii() and _LETTERS_MIXED.search(text):
        yield skeleton(text), *whole


def _if_text(found: re.Match[str], decoded: str) -> Iterator[tuple[str, int, int]]:
    if len(decoded.split()) > 2 and decoded.isprintable():
        yield decoded, *found.span()


def _from_base64(text: str) -> str:
    body = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4)).decode("utf-8", "ignore")
    except ValueError:
        return ""


def _join_spelled(text: str) -> str:
    """`i g n o r e   a l l` and `i.g.n.o.r.e a.l.l` with whole words: a wider gap separates words."""
    gap = r"(?<=\w)[._*-](?=\w)" if re.search(r"\w[._*-]\w[._*-]\w", text) else r"(?<=\b\w) (?=\w\b)"
    return re.sub(gap, "", text)
