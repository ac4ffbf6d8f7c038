"""The words of a namespace, and requests that name one: `list all tools of stripe`."""

import re
from functools import lru_cache

from mats.domain.text.words import words

_USERS = ["io", "github"]
"""The start of namespaces of GitHub's users: the next label is the name of one."""
_TOP = frozenset("com org net io dev ai app co gov edu info cloud eu us uk de fr nl ch jp cn in me xyz sh".split())
_GENERIC = frozenset(
    "www api apis mcp a2a rest server servers tool tools skill skills agent agents model models".split()
)
_KINDS = (
    r"tools?|skills?|agents?|models?|capabilit(?:y|ies)|operations?|functions?|methods?|endpoints?|apis?|mcps?|servers?|"
    r"commands?|namespaces?|services?|actions?|integrations?"
)
_LISTING = re.compile(
    r"\b(?:(?:list|show|give me|get|see|find|browse|enumerate)\s+(?:me\s+)?(?:all|every|everything|the)?|"
    rf"what|which|all|every(?:thing)?)\b.*\b(?:{_KINDS}|(?:can|does|do|could)\b.*\b(?:do|offers?|provides?|supports?|have|has)|"
    r"offers?|provides?|from|of|in)\b",
    re.IGNORECASE,
)
_ASKING = frozenset(
    (
        "list show give me get see find browse enumerate all every everything the a an what which are is there "
        "can could does do did offer offers provide provides support supports have has i we you use from of in by "
        "with for on it its available please tool tools skill skills agent agents model models capability "
        "capabilities operation operations function functions method methods endpoint endpoints api apis mcp mcps "
        "server servers command commands namespace namespaces service services action actions integration "
        "integrations s"
    ).split()
)
_MOST_NAMED, _MOST_IN_NAME = 3, 2
_LONGEST = 200
"""Characters of a request that are read; a longer one names no namespace."""


@lru_cache(maxsize=20_000)
def namespace_words(namespace: str) -> frozenset[str]:
    """The telling words of a namespace, without top-level domains and the names of GitHub's users.

    `com.acme.pay-links` has `acme`, `pay` and `links`; `io.github.someone.weather-mcp` has `weather`.
    """
    labels = namespace.split(".")
    if labels[:2] == _USERS and len(labels) > 2:
        labels = labels[3:] or labels[2:]
    elif len(labels) > 1 and labels[0] in _TOP:
        labels = labels[1:]
    return frozenset(words(" ".join(labels).replace("-", " "))) - _GENERIC


def named_words(text: str) -> frozenset[str]:
    """The words that may name a namespace: of a request for what one has, or of one that is nothing but a name.

    Empty for any other request.
    """
    every = words(text[:_LONGEST])
    rest = frozenset(every) - _ASKING - _TOP
    if is_listing(text):
        return rest if len(rest) <= _MOST_NAMED else frozenset()
    return rest if len(every) == len(rest) <= _MOST_IN_NAME else frozenset()


def is_listing(text: str) -> bool:
    """Whether a request asks what something has: `which tools does jira have`."""
    return _LISTING.search(text[:_LONGEST]) is not None


def is_named(namespace: str, asked: frozenset[str], text: str) -> bool:
    """Whether a request names a namespace: by some of its words if it asks what that has, else by all of them."""
    has = namespace_words(namespace)
    return asked <= has if is_listing(text) else asked == has
