"""Class what changed between two versions of a capability, and say it in words: docs/decisions/0097.

A later version is compared with the last one that operators approved, not with the last write, so that small steps add
up. What matters of a version is its `Contract`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import filterfalse
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mats.domain.capability.registration import Registration
from mats.domain.capability.suspicion import INSTRUCTIONS, JUDGEMENTS, WRITTEN
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.origin import fingerprint
from mats.domain.profile.profile import Contract, Profile, profile_of
from mats.domain.protocols.descriptors import DESTROYS, READS, SAFE
from mats.domain.protocols.values import mapping_at, texts, value_at
from mats.domain.text.fence import encode_json, size, truncate_json, visible
from mats.domain.text.words import clip, content_words, stem, stems

LEAST_SIMILAR = 0.4  # Cosine below which the meaning has moved: docs/decisions/0097
_LEAST_COMMON = 0.6  # Share of the words of the shorter of two texts from which on one is the other renamed
_MAX_INPUTS, _MAX_WORDS, _DEEPEST = 400, 120, 6
_MAX_PART = 300  # Characters of a path of inputs, and of whatever else is compared as a whole
_ROOM = {
    "text": 4_000, "description": 2_000, "reaches": 2_000, "inputs": 9_000, "flags": 1_500, "details": 10_000,
}  # fmt: skip
"""Bytes of JSON of each attribute of a contract: together less than `MAX_CONTRACT_BYTES`."""


class ChangeClass(StrEnum):
    """The classes of changes, from the mildest."""

    HARMLESS = "harmless"  # Wording
    COMPATIBLE = "compatible"  # Calls of the version before still work
    BREAKING = "breaking"
    DANGEROUS = "dangerous"  # It reaches or does something else than what was approved


_ORDER = list(ChangeClass)


class Reason(NamedTuple):
    change: ChangeClass
    words: str

    def __str__(self) -> str:
        return f"{self.change}: {self.words}"


def worst(reasons: Iterable[Reason]) -> ChangeClass:
    """The gravest class of these; harmless if there are none."""
    return max((reason.change for reason in reasons), key=_ORDER.index, default=ChangeClass.HARMLESS)


def contract_of(profile: Profile) -> Contract:
    """What callers of this version rely on, by its owner's words alone."""
    by_owner = {"positive_examples": profile.examples_by_owner}
    raw = profile.model_copy(update={"enriched": False, "enrichment": profile.enrichment.model_copy(update=by_owner)})
    call = json.loads(profile.invocation) if profile.invocation else {}
    nodes = _nodes(profile.input_schema)
    inputs = ((path, _short(_type(node)) + ("!" if node.get(_NEEDED) else "")) for path, node in nodes)
    return Contract(
        text=truncate_json(embedded_text(raw), _ROOM["text"]),
        description=truncate_json(profile.source.description if profile.source else "", _ROOM["description"]),
        reaches=tuple(_fit("reaches", dict.fromkeys(sorted(_destinations(call, profile)), ""))),
        inputs=_fit("inputs", dict(sorted(inputs))),
        effects=tuple(sorted(profile.effects)),
        flags=tuple(_fit("flags", dict.fromkeys(filterfalse(_is_of_writer, profile.suspicious), ""))),
        details=_fit("details", dict(_details(call, profile))),
    )


def _fit(part: str, found: Mapping[str, str]) -> dict[str, str]:
    """What has room in this part of a contract, the first first; the rest is one entry: its number, a fingerprint."""
    room, parts = _ROOM[part], [(_short(name), kind) for name, kind in found.items()]
    for place, (name, kind) in enumerate(parts):
        room -= size(encode_json(name) + encode_json(kind)) + 2
        if room < 0:
            rest = parts[place:]
            parts[place:] = [(f"{len(rest):,} more, {fingerprint(rest)[:8]}", "")]
            break
    return dict(sorted(parts))


_REST = re.compile(r"[\d,]+ more, [0-9a-f]{8}")  # The entry that `_fit` makes of what has no room


_PARTS = {"reaches": "destinations", "inputs": "inputs", "flags": "flags", "details": "texts"}
"""Parts of a contract that may end in such an entry, as people call them."""


def _beyond(before: Contract, after: Contract) -> Iterator[Reason]:
    """The parts of which something changed that has no room in a contract."""
    for part, name in _PARTS.items():
        one, other = ({*filter(_REST.fullmatch, getattr(each, part) or ())} for each in (before, after))
        if one != other and getattr(before, part) is not None:
            yield Reason(_DANGEROUS, f"its {name} beyond those that a contract keeps changed")


def _without_rest(contract: Contract) -> Contract:
    return contract.model_copy(
        update={part: _drop_rest(found) for part in _PARTS if (found := getattr(contract, part))}
    )


def _drop_rest(part: Mapping[str, str] | tuple[str, ...]) -> Mapping[str, str] | tuple[str, ...]:
    names = filterfalse(_REST.fullmatch, part)
    return {name: part[name] for name in names} if isinstance(part, Mapping) else tuple(names)


def _short(text: str) -> str:
    return text if len(text) <= _MAX_PART else f"{text[:_MAX_WORDS]}… {fingerprint(text)[:8]}"


def changes_of(before: Registration, after: Registration) -> tuple[Reason, ...]:
    """The changes between two registrations, gravest first, without what only an encoder can tell."""
    one, other = (contract_of(profile_of(each, origin="")) for each in (before, after))
    return compare(one, other, own=own_domain(after.namespace)) or ((WORDING,) if before != after else ())


def compare(before: Contract, after: Contract, similarity: float | None = None, *, own: str = "") -> tuple[Reason, ...]:
    """The changes from what was approved to what is to take its place, gravest first; none for equal ones.

    `similarity` is the cosine of the new description with the one before or with the whole text, which name and inputs
    make longer, whichever is larger; None: unknown, or the description is the same. `own` is the owner's `own_domain`.
    """
    reasons, changed = list(_beyond(before, after)), before != after
    before, after = _without_rest(before), _without_rest(after)
    reasons += [*_reach(before, after, own), *_deeds(before, after), *_interface(before.inputs, after.inputs)]
    reasons += _particulars(before, after)
    known = {_reason_of(flag) for flag in before.flags}
    reworded = (before.text, before.details) != (after.text, after.details)
    reasons += [
        Reason(_DANGEROUS, f"its text {flag}")
        for flag in after.flags
        if _reason_of(flag) not in known or (reworded and f": {INSTRUCTIONS}]" not in flag)
    ]
    if similarity is not None and similarity < LEAST_SIMILAR:
        reasons.append(Reason(_DANGEROUS, f"its meaning moved: similarity {similarity:.2f}, below {LEAST_SIMILAR}"))
    if not reasons and changed:
        reasons.append(WORDING)
    return tuple(sorted(dict.fromkeys(reasons), key=lambda each: (-_ORDER.index(each.change), each.words)))


def is_renamed(before: Contract, after: Contract) -> bool:
    """Whether one has most of the other's words, as an entry that was removed and added under another name."""
    one, other = stems(before.text), stems(after.text)
    fewer = min(len(one), len(other))
    return bool(fewer) and len(one & other) >= _LEAST_COMMON * fewer


def own_domain(namespace: str) -> str:
    """The domain that a namespace spells in reverse; empty for one without a dot."""
    return ".".join(reversed(namespace.split("."))) if "." in namespace else ""


_DANGEROUS, _BREAKING = ChangeClass.DANGEROUS, ChangeClass.BREAKING
WORDING = Reason(ChangeClass.HARMLESS, "its wording changed")


def _is_of_writer(flag: str) -> bool:
    """True for what a writer wrote or says, which comes later than the registration."""
    return f": {WRITTEN}]" in flag or _reason_of(flag) in JUDGEMENTS


def _reason_of(flag: str) -> str:
    """The reason of a flag, without the place where it was found."""
    return flag.partition(" [")[0]


def _reach(before: Contract, after: Contract, own: str) -> Iterator[Reason]:
    """What is reached now and was not; `https` in place of `http` is the same."""
    known = {*before.reaches, *map(_with_tls, before.reaches)}
    gone = [each for each in before.reaches if not {each, _with_tls(each)} & {*after.reaches}]
    instead = f", no longer {_quote(', '.join(gone))}" if gone else ""
    new = [each for each in after.reaches if each not in known]
    for each in new:
        host = (urlsplit(each).hostname or "") if each.startswith("https://") else ""
        is_own = bool(own) and f".{host}".endswith(f".{own}")
        yield Reason(_BREAKING if is_own else _DANGEROUS, f"it reaches {_quote(each)}{instead}")
    if gone and not new:
        yield Reason(_BREAKING, f"it no longer reaches {_quote(', '.join(gone))}")


def _with_tls(address: str) -> str:
    return re.sub("^http://", "https://", address)


def _deeds(before: Contract, after: Contract) -> Iterator[Reason]:
    for effect in (READS, SAFE):
        if effect in before.effects and effect not in after.effects and READS not in after.effects:
            yield Reason(_DANGEROUS, f"it no longer says that it is {effect}")
    if DESTROYS in after.effects and DESTROYS not in before.effects:
        yield Reason(_DANGEROUS, f"it now says that it is {DESTROYS}")


def _interface(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Reason]:
    for name, kind in after.items():
        needed = kind.endswith("!")
        if name not in before:
            change = _BREAKING if needed else ChangeClass.COMPATIBLE
            change = change if _holds_no_text(kind) else _DANGEROUS
            yield Reason(change, f"{'required' if needed else 'optional'} input {_quote(name)} is new")
            continue
        one, other = before[name].rstrip("!"), kind.rstrip("!")
        if one != other and one and other:
            yield Reason(_BREAKING, f"input {_quote(name)} was {_quote(one)} and is {_quote(other)}")
        if needed and not before[name].endswith("!"):
            change = _BREAKING if _holds_no_text(kind) else _DANGEROUS
            yield Reason(change, f"input {_quote(name)} is required now")
    yield from (Reason(_BREAKING, f"input {_quote(name)} is gone") for name in before if name not in after)


def _holds_no_text(kind: str) -> bool:
    """True if an input of this type cannot be asked to hold what somebody said."""
    return kind.rstrip("!") in ("integer", "number", "boolean")


_SENT, _VALUES, _SAYS, _INPUT = "sends ", "the values of ", "says of ", "says of input "
_MAX_TEXT, _NEAR = 1_600, 0.75  # Characters of a text that is no description, and share of its words that are known
_MAX_COUNTED = 20  # Words of a text about an input that this share is taken of, however long it is
_CONSTANTS = ("const", "default", "enum", "examples")
_GRAVE = stems(
    "charge delete destroy erase execute exfiltrate forward fund install money overwrite password pay publish purge "
    "remove secret share token transfer upload wipe withdraw"
)
"""Stems of what a text that is read as advice should not begin to speak of unseen."""


def _details(call: Mapping[str, Any], profile: Profile) -> Iterator[tuple[str, str]]:
    """What a caller sends beside inputs, the values that inputs suggest, and texts other than the description."""
    source = profile.source
    yield from ((f"{_SENT}{kind} {name}", "") for kind in ("env", "headers") for name in call.get(kind) or ())
    for name, text in {
        "its title": source.title if source else "",
        "inputs and outputs": source.parameter_text if source else "",
        "itself and its provider": source.other if source else "",
        "when to use it": " ".join(profile.examples_by_owner),
    }.items():
        yield f"{_SAYS}{name}", clip(text, _MAX_TEXT)
    for path, node in sorted(_nodes(profile.input_schema), key=itemgetter(0)):
        values = {key: node[key] for key in _CONSTANTS if key in node}
        if values:
            yield f"{_VALUES}{path}", _short(json.dumps(values, sort_keys=True))
        if about := " ".join(str(node[key]) for key in ("title", "description") if node.get(key)):
            yield f"{_INPUT}{path}", clip(about, _MAX_TEXT)


def _particulars(before: Contract, after: Contract) -> Iterator[Reason]:
    """What is sent, suggested or said now and was not."""
    if before.details is None or after.details is None:
        return
    said = stems("\n".join((before.text, *before.details.values())))
    inputs = stems("\n".join(text for name, text in after.details.items() if name.startswith(_INPUT)))
    for name, text in after.details.items():
        if before.details.get(name) == text:
            continue
        path = name.removeprefix(_INPUT).removeprefix(_VALUES)
        if name.startswith(_SENT):
            yield Reason(_DANGEROUS, f"it {_quote(name)}")
            continue
        if path != name and path not in before.inputs and _holds_no_text(after.inputs.get(path, "")):
            continue  # an input that is new, and cannot hold much
        if name.startswith(_VALUES):
            yield Reason(_DANGEROUS, f"{_quote(name)} changed")
            continue
        count, is_input = len(content_words(text)), path != name
        most = (1 - _NEAR) * (min(count, _MAX_COUNTED) if is_input else count)
        if len(stems(text) - said - (set() if is_input else inputs)) > most:
            about = f"input {_quote(path)}" if is_input else name.removeprefix(_SAYS)
            yield Reason(_DANGEROUS, f"of {about}, more than a quarter of the words are new")
    now = set(content_words("\n".join((after.text, *after.details.values()))))
    if grave := sorted(word for word in now if stem(word) in _GRAVE - said):
        yield Reason(_DANGEROUS, f"it speaks of {_quote(', '.join(grave))} now")


def _quote(text: str) -> str:
    return f"`{visible(clip(text, _MAX_WORDS))}`"


_NEEDED = "\n"  # Key of a node whose input is required; no schema has it


def _nodes(schema: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schema of each input by its path; what lies beyond the limits is one node, a fingerprint of it."""
    stack = [("", json.loads(schema) if schema else {}, 0)]
    beyond, seen = list[tuple[str, str]](), 0
    while stack:
        prefix, node, depth = stack.pop()
        if seen >= _MAX_INPUTS or depth > _DEEPEST:
            beyond += [(prefix, fingerprint(node))] if mapping_at(node, "properties") else []
            continue
        needed = texts(value_at(node, "required"))
        for name, value in mapping_at(node, "properties").items():
            seen += 1
            path = _short(f"{prefix}{name}")
            yield path, {**(value if isinstance(value, Mapping) else {}), _NEEDED: name in needed}
            if isinstance(value, Mapping):
                stack += [(f"{path}.", value, depth + 1), (f"{path}[].", value.get("items"), depth + 1)]
    if beyond:
        yield "deeper inputs", {_NEEDED: False, "const": fingerprint(sorted(beyond))}


def _type(value: object) -> str:
    """The type of a schema, as text that does not depend on the order of alternatives."""
    if not isinstance(value, Mapping):
        return ""
    stated = value.get("type")
    if isinstance(stated, list):
        return " or ".join(sorted(str(each) for each in stated if each != "null"))
    alternatives = next((value[key] for key in ("anyOf", "oneOf") if isinstance(value.get(key), list)), ())
    return str(stated) if stated else " or ".join(sorted({_type(each) for each in alternatives} - {"", "null"}))


_GENERIC = re.compile(r"mcp|sse|messages?|api|rpc|jsonrpc|a2a|agent|stream|http|v?\d+([.-]\d+)*|\{.*\}", re.IGNORECASE)
"""Segments of paths that name no server: versions and protocols."""
_VERSION = re.compile(r"(?<=[\w/])(@(?!.*/)[^/@]*|==.*|:[\w.-]+)$")
_MODEL_VERSION = re.compile(r"(-\d{8})?(-v\d+(:\d+)?)?$")
_FETCH = re.compile(
    r"(?:\bcurl|\bwget|\binvoke-webrequest|\biwr|\bgit clone|\bpip3? install|\bnpx|\buvx|\bnpm (?:i|install)|fetch\()"
    r"[^\n|;&]{0,200}?(https?://[^\s\"'`)>\]]+)",
    re.IGNORECASE,
)


def _destinations(call: Mapping[str, Any], profile: Profile) -> Iterator[str]:
    """Where calls go, what they start, and from where the text tells to fetch something."""
    by_path = call.get("protocol") != "http"
    for url in filter(None, (call.get("url"), profile.endpoint)):
        yield _server(str(url), by_path=by_path)
    if command := call.get("command"):
        yield f"command {command}"
        yield from (f"argument {_VERSION.sub('', str(each))}" for each in call.get("args") or ())
    if (tool := call.get("tool")) and tool != profile.name:
        yield f"tool {tool}"
    if model := call.get("model"):
        yield f"model {_MODEL_VERSION.sub('', str(model))}"
    said = profile.source.description if profile.source else ""
    yield from (f"fetch {urlsplit(url).netloc}" for url in _FETCH.findall(f"{said}\n{profile.instructions}"))


def _server(url: str, *, by_path: bool) -> str:
    """Scheme and host of an address; by path, with the first segment that names one of several servers there."""
    try:
        split = urlsplit(url)
        host = (split.hostname or "") + (f":{split.port}" if split.port not in (None, 80, 443) else "")
    except ValueError:
        return url
    telling = [part for part in split.path.split("/") if part and not _GENERIC.fullmatch(part)]
    return f"{split.scheme}://{host}" + (f"/{telling[0]}" if telling and by_path else "")
