"""Identifiers of Agentic Resource Discovery: `urn:air:<publisher>:<kind>:<name>`, made of our ids and read again.

The publisher is the namespace as a host name, `com.acme.pay` as `pay.acme.com`; the specification wants a fully
qualified one, so a namespace of a single label gets the reserved `.localhost` behind it. In the name, a slash between
two other characters is a colon, and what the specification does not allow is its code point, `_x20_`.
"""

import re
from typing import NamedTuple

from mats.domain.capability import Id, Kind, capability_id
from mats.domain.errors import Fault, RequestInvalid

PATTERN = r"^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$"
"""As the specification has it: no percent-encoding in an identifier."""
_SYNTAX = re.compile(PATTERN.removesuffix("$") + r"\Z")
_RESERVED = ".localhost"
_LONGEST = 8_000
"""Characters; the longest identifier of ours is below 3,000."""

_TO_ESCAPE = re.compile(
    r"(?P<slash>(?<=[^/])/(?=[^/]))"
    r"|_(?=x[0-9a-f]+[^A-Za-z0-9.-])"  # would read as an escape
    r"|[^A-Za-z0-9._-]"
)
_ESCAPED = re.compile(r":|_x([0-9a-f]{1,6})_")


class Named(NamedTuple):
    """What an identifier names, whether it is there or not."""

    kind: Kind
    id: Id


def identifier(kind: Kind, namespace: str, name: str) -> str:
    """The identifier of a capability; different capabilities have different ones."""
    return f"urn:air:{publisher(namespace)}:{kind}:{_TO_ESCAPE.sub(_escape, name)}"


def named(text: str) -> Named | None:
    """What an identifier names; None if it is a valid one, but none that we would give.

    Raises:
        RequestInvalid: this is no identifier of the specification.
    """
    if len(text) > _LONGEST or not _SYNTAX.match(text):
        raise RequestInvalid([Fault("identifier", "is not of the form urn:air:<publisher>:<namespace>:<name>")])
    _, _, domain, *segments = text.split(":", 4)
    namespace = namespace_of(domain)
    if namespace is None or len(segments) < 2 or segments[0] not in set(Kind):
        return None
    name = _read(segments[1])
    if name is None or identifier(Kind(segments[0]), namespace, name) != text:
        return None
    return Named(Kind(segments[0]), capability_id(namespace, name))


def publisher(namespace: str) -> str:
    """The host name that stands for a namespace."""
    host = ".".join(reversed(namespace.split(".")))
    return host + _RESERVED if "." not in host or host.endswith(_RESERVED) else host


def namespace_of(domain: str) -> str | None:
    """The namespace that a host name stands for; None if it stands for none."""
    namespace = ".".join(reversed(domain.removesuffix(_RESERVED).split(".")))
    return namespace if publisher(namespace) == domain else None


def _escape(found: re.Match[str]) -> str:
    return ":" if found["slash"] else f"_x{ord(found[0]):x}_"


def _read(text: str) -> str | None:
    """The name behind an escaped one; None if an escape is of no character."""
    try:
        name = _ESCAPED.sub(lambda found: "/" if found[0] == ":" else chr(int(found[1], 16)), text)
        name.encode()
    except (ValueError, OverflowError):  # beyond Unicode, or half a character
        return None
    return name
