"""Finds text that steers the model that reads it, by the structure of its clauses rather than by sentences: 0087.

Each word becomes the letter of its class (`steering.toml`, with the words of a dozen languages; paths, addresses,
identifiers by their shape), so that a text becomes a short string of classes, and a rule is an expression over that
string: a verb of taking, a private file, a verb of sending. What a security tool quotes as an example of an attack is
left out. The tables are read and compiled at the first text: a search needs none of them.
"""

import base64
import binascii
import codecs
import html
import re
import tomllib
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from mats.domain.text.fence import skeleton
from mats.domain.text.words import spelled_words, split_identifier

ORDERS = "contains instructions to a model"
EXFILTRATION = "asks for private data to be passed on"
DIRECTION = "directs the use of other tools"
DEED = "does what its name does not say"


class Found(NamedTuple):
    """A reason, and the part of the text that it is about."""

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
_REASONS = {"orders": ORDERS, "exfiltration": EXFILTRATION, "direction": DIRECTION, "deed": DEED}


@dataclass(frozen=True, slots=True)
class _Grammar:
    """The tables of `steering.toml`, compiled; `topics`: words that show what a tool is about."""

    class_of: Mapping[str, str]
    token: re.Pattern[str]
    rules: tuple[tuple[str, re.Pattern[str]], ...]
    salient: frozenset[str]
    tools: frozenset[str]
    others: frozenset[str]
    groups: Mapping[str, tuple[frozenset[str], re.Pattern[str]]]
    gatherings: tuple[tuple[str, str, list[str], list[str]], ...]
    topics: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, tables: Mapping[str, Mapping[str, Any]]) -> "_Grammar":
        class_of = {word: letter for letter, those in tables["words"].items() for word in those.split()}

        def of_classes(letters: str) -> frozenset[str]:
            return frozenset(word for word, letter in class_of.items() if letter in letters)

        rules = (
            (_REASONS[name], re.compile("|".join(map(_expression, r.split())))) for name, r in tables["rules"].items()
        )
        unspaced = sorted(filter(_SPACED.search, class_of), key=len, reverse=True)
        salient = tables["salient"]
        return cls(
            class_of=class_of,
            token=_token(tables["phrases"], unspaced),
            rules=tuple(rules),
            salient=of_classes(salient["classes"]) | frozenset(salient["words"].split()),
            tools=of_classes("Z"),
            others=of_classes("OVXy"),
            groups={
                name: (frozenset(letters), re.compile(shapes.strip().replace("\n", "|") or "(?!)"))
                for name, (letters, shapes) in tables["groups"].items()
            },
            gatherings=tuple(
                (_REASONS[name], topic, *_split_by_sign(each))
                for name, by_topic in tables["gatherings"].items()
                for topic, rules in by_topic.items()
                for each in rules.strip().splitlines()
            ),
            topics={topic: frozenset(those.split()) for topic, those in tables["topics"].items()},
        )


@lru_cache(maxsize=1)
def _grammar() -> _Grammar:
    return _Grammar.of(tomllib.loads(files(__package__).joinpath("steering.toml").read_text(encoding="utf-8")))


def _split_by_sign(rule: str) -> tuple[list[str], list[str]]:
    """The groups that a sentence has and, after a minus, those that it has not."""
    names = rule.split()
    return [name for name in names if name[0] != "-"], [name[1:] for name in names if name[0] == "-"]


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


def _expression(rule: str) -> str:
    gaps = re.sub(r"~(\d*)", lambda found: f"[^|]{{0,{found[1] or 2}}}", rule)
    return gaps.replace("#", "(?:(?<=[|,&NWYBQMna])|(?<=[WYM]t))")


_PLAIN_WORD = re.compile("[a-z]+")
_SHAPES = re.compile(r"[~:]/|@|\+\d{5}|\.(?:env|ssh|aws|kube|example)\b|etc/|\b0x|id_(?:rsa|ed)")


def may_steer(lowered: str) -> bool:
    """False for most texts in which no rule can match, in a tenth of the time."""
    if not lowered.isascii():
        return True
    grammar, those = _grammar(), set(_PLAIN_WORD.findall(lowered))
    if not those.isdisjoint(grammar.salient) or _SHAPES.search(lowered):
        return True
    return not those.isdisjoint(grammar.tools) and ("_" in lowered or not those.isdisjoint(grammar.others))


class Sentences(NamedTuple):
    """A text in lower case, the classes of its words, one letter each, and where each word is."""

    lowered: str
    classes: str
    spans: list[tuple[int, int]]


def classify(text: str) -> Sentences:
    """The words of a visible text, as `steering_in` and `gatherings_in` read them."""
    grammar, lowered, classes, spans = _grammar(), text.lower(), ["|"], [(0, 0)]
    for token in grammar.token.finditer(lowered):
        kind = token.lastgroup or ""
        if kind == "space":
            continue
        if kind == "K0":
            letter = "K" if text[token.start() : token.end()].isupper() else "X"
        elif kind == "stop":
            letter = "|"
        elif kind == "pause":
            letter = ","
        elif kind in ("word", "cjk"):
            letter = grammar.class_of.get(token[0].replace("’", "'").strip("'-"), ".")
        else:
            letter = grammar.class_of.get(token[0].strip("`"), kind[0]) if kind == "X" else kind[0]
        if letter == "_":
            continue
        classes.append(letter)
        spans.append(token.span())
    return Sentences(lowered, "".join(classes), spans)


def steering_in(sentences: Sentences) -> Iterator[Found]:
    """Passages that steer a model, in a text that `may_steer`: at most one finding of each reason."""
    _, classes, spans = sentences
    for reason, rules in _grammar().rules:
        if found := rules.search(classes):
            first, last = found.start(), max(found.start(), found.end() - 1)
            yield Found(reason, spans[first][0], spans[last][1])


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
    except (binascii.Error, ValueError):
        return ""


def _join_spelled(text: str) -> str:
    """`i g n o r e   a l l` and `i.g.n.o.r.e a.l.l` with whole words: a wider gap separates words."""
    gap = r"(?<=\w)[._*-](?=\w)" if re.search(r"\w[._*-]\w[._*-]\w", text) else r"(?<=\b\w) (?=\w\b)"
    return re.sub(gap, "", text)


_PRIVATE_PARAMETER = re.compile(
    r"(?:ssh|private|secret_?access|signing)_?key|system_?prompt|(?:conversation|chat|message)_?(?:history|log)|"
    r"seed_?phrase|mnemonic|environment_?variables|(?:browser|session)_?cookies|id_rsa",
    re.IGNORECASE,
)
_PIPED = re.compile(r"(?:curl|wget)\b[^|\n]{0,120}\|\s*(?:sudo )?(?:ba|z)?sh\b|\bany shell commands?\b", re.IGNORECASE)
_HANDLES_PRIVATE = re.compile(r"[gGzsSeEVU][^|]{0,8}F")


def topics_of(name: str, description: str) -> frozenset[str]:
    """The topics of `steering.toml` that a name, or the beginning of a description, is about."""
    opening = _grammar().token.sub(_keep_words, _CLAUSE.split(description.lower(), maxsplit=1)[0])
    about = {*spelled_words(split_identifier(name)), *spelled_words(opening)}
    return frozenset(topic for topic, words in _grammar().topics.items() if not about.isdisjoint(words))


_CLAUSE = re.compile(r"[.,;:!?()](?:\s|$)|\n| (?:and|by|after|before|while|when|with) ")


def unrelated_deed(description: str, parameters: Iterable[str]) -> tuple[int, int] | None:
    """Where the description of a tool that is not about private things tells of them, or of scripts.

    (0, 0) if it is a parameter.
    """
    private = any(map(_PRIVATE_PARAMETER.search, parameters))
    if not (private or _SHAPES.search(description.lower()) or _PIPED.search(description)):
        return None
    _, classes, spans = classify(description)
    if found := _HANDLES_PRIVATE.search(classes):
        return spans[found.start()][0], spans[found.end() - 1][1]
    if piped := _PIPED.search(description):
        return piped.span()
    return (0, 0) if private else None


_LONGEST_WORDS, _LONGEST = 45, 500  # words and characters: a longer sentence is mostly a list


def _membership(letters: set[str], sentence: str) -> Callable[[str], bool]:
    @cache
    def has(group: str) -> bool:
        classes, shapes = _grammar().groups[group]
        return not letters.isdisjoint(classes) or bool(shapes.search(sentence))

    return has


def gatherings_in(sentences: Sentences) -> Iterator[tuple[Found, str]]:
    """Short sentences that have a word of each group that a rule asks for, in any order, with the rule's topic.

    They count unless the registration is about that topic.
    """
    grammar, (lowered, classes, spans) = _grammar(), sentences
    starts = [at for at, letter in enumerate(classes) if letter == "|"]
    for start, after in zip(starts, [*starts[1:], len(classes)], strict=True):
        letters, sentence = set(classes[start:after]), lowered[spans[start][1] : spans[after - 1][1]]
        if not 2 < after - start <= _LONGEST_WORDS or len(sentence) > _LONGEST:
            continue
        has = _membership(letters, sentence)
        for reason, topic, wanted, unwanted in grammar.gatherings:
            if all(map(has, wanted)) and not any(map(has, unwanted)):
                yield Found(reason, spans[start][1], spans[after - 1][1]), topic


def _keep_words(token: re.Match[str]) -> str:
    return " " if token.lastgroup in ("F", "X", "L0") else token[0]
