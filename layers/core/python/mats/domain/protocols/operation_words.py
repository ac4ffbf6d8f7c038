"""What an HTTP operation does, in words: a rule over its method, path and name."""

import re

from mats.domain.capability.registration import Registration
from mats.domain.text.acts import VERBS, Act, verb_in
from mats.domain.text.words import clip, is_plural, split_identifier, word_set

_OPERATION = "openapi-operation"
_MOST_SEGMENTS, _LONGEST = 12, 200
_LEFT_OUT = re.compile(r"v?\d+(?:\.\d+)*|\d{4}-\d\d-\d\d|api|rest|lifecycle|actions?|json", re.IGNORECASE)
"""Segments that name no resource: versions, and words around the others."""
_SUFFIX = re.compile(r"\.(?:json|xml|csv)$")
_ONE = re.compile(r"\{[^{}]*\}|:[A-Za-z]|@me$|me$|self$")  # A segment that stands for one of the resource before it
_BY_METHOD = {"POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}
_OF_ONE = word_set("create add new insert register make delete remove destroy update get show retrieve describe view")
_OF_MANY = word_set("list search find count browse")


def spoken_operation(registration: Registration) -> str:
    """A sentence such as `list the users of a group` for `GET /groups/{groupId}/users`.

    Empty for what is no operation of an HTTP API, and where its path names nothing.
    """
    descriptor = registration.descriptor or {}
    if descriptor.get("format") != _OPERATION:
        return ""
    return say(str(descriptor.get("method")), str(descriptor.get("path")), registration.name)


def say(method: str, path: str, name: str) -> str:
    """The sentence of an operation; a path is its owner's word, so that only its words are taken, within bounds."""
    resources, action = _read(path[:2_000], reads=method.upper() in ("GET", "HEAD"))
    verb = action or verb_in(split_identifier(name[:_LONGEST]).lower().split())
    if not resources:
        return ""
    text, is_one = resources[-1]
    if not verb:
        verb = _BY_METHOD.get(method.upper(), "get" if is_one or not is_plural(text) else "list")
    elif verb == "get" and not is_one and is_plural(text):
        verb = "list"
    is_one = (is_one or verb in _OF_ONE) and verb not in _OF_MANY
    said = [verb, _one(text) if is_one else f"the {text}"]
    said += [f"of {_one(text)}" if is_one else f"in {text}" for text, is_one in reversed(resources[-3:-1])]
    return clip(" ".join(said), _LONGEST)


def _read(path: str, *, reads: bool) -> tuple[list[tuple[str, bool]], str]:
    """The resources of a path, each with whether one of them is meant, and the action at its end; or empty.

    A method that reads has no action that writes.
    """
    resources: list[tuple[str, bool]] = []
    place, _, fragment = path.partition("?")[0].partition("#")
    parts = [_SUFFIX.sub("", part) for part in place.split("/") if part]
    if parts and "{" not in parts[-1]:
        parts[-1:] = parts[-1].replace(":", ".").split(".")  # `users.list`, `levels:append`
    for part in parts[-_MOST_SEGMENTS:]:
        words = [word for word in split_identifier(part).lower().split() if word.isalpha()]
        if _ONE.match(part):
            resources[-1:] = [(text, True) for text, _ in resources[-1:]]
        elif words and not _LEFT_OUT.fullmatch(part):
            resources.append((" ".join(words[:6]), False))
    last = (split_identifier(fragment).lower() or resources[-1][0]).split() if resources else []
    is_action = bool(last) and last[0] in VERBS and (not reads or VERBS[last[0]] is Act.READ)
    if is_action and (fragment or len(resources) > 1):
        if not fragment:
            resources.pop()
        if last[1:]:
            resources.append((" ".join(last[1:]), True))
        elif resources and last[0] not in _OF_MANY:
            resources[-1] = (resources[-1][0], True)
        return resources, last[0]
    return resources, ""


def _one(text: str) -> str:
    """The last noun in the singular, with an article."""
    if text.endswith("ies"):
        text = f"{text[:-3]}y"
    elif text.endswith(("sses", "uses", "xes", "ches", "shes")):
        text = text[:-2]
    elif is_plural(text):
        text = text[:-1]
    return f"{'an' if re.match(r'[aeio]|u(?!ni|s[aei])', text) else 'a'} {text}"
