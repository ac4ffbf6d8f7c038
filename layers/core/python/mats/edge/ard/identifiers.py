"""Identifiers of Agentic Resource Discovery: `urn:air:<publisher>:<kind>:<name>`, formatted from our ids and parsed.

The publisher is the namespace as a host name, `com.acme.pay` as `pay.acme.com`. The specification requires a fully
qualified name, so a namespace of a single label gets the reserved suffix `.localhost`. In the name, a slash between two
other characters becomes a colon, and characters that the specification does not allow are escaped, as in `_x20_`.
"""

import re
from typing import NamedTuple

from mats.domain.capability.capability import Id, Kind, capability_id
from mats.domain.errors import Fault, RequestInvalid

PATTERN = r"^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$"
"""From the specification, which has no percent-encoding in an identifier."""
_SYNTAX = re.compile(PATTERN.removesuffix("$") + r"\Z")
_RESERVED = ".localhost"
_LONGEST = 8_000
"""Characters. Our longest identifier has less than 3,000."""

_TO_ESCAPE = re.compile(
    r"(?P<slash>(?<=[^/])/(?=[^/]))"
    r"|_(?=x[0-9a-f]+[^A-Za-z0-9.-])"  # would read as an escape
    r"|[^A-Za-z0-9._-]"
)
_ESCAPED = re.compile(r":|_x([0-9a-f]{1,6})_")


class ArdName(NamedTuple):
    """The kind and id in an identifier; the capability need not exist."""

    kind: Kind
    id: Id


def identifier(kind: Kind, namespace: str, name: str) -> str:
    """The identifier of a capability; distinct capabilities have distinct identifiers."""
    escaped = _TO_ESCAPE.sub(lambda found: ":" if found["slash"] else f"_x{ord(found[0]):x}_", name)
    return f"urn:air:{publisher(namespace)}:{kind}:{escaped}"


def parse_identifier(text: str) -> ArdName | None:
    """The kind and id in an identifier; None if it is valid but not one that `identifier` returns.

    Raises:
        RequestInvalid: it breaks the specification.
    """
    if len(text) > _LONGEST or not _SYNTAX.match(text):
        raise RequestInvalid([Fault("identifier", "is not of the form urn:air:<publisher>:<namespace>:<name>")])
    _, _, domain, *segments = text.split(":", 4)
    namespace = namespace_of(domain)
    if namespace is None or len(segments) < 2 or segments[0] not in set(Kind):
        return None
    name = _unescape(segments[1])
    if name is None or identifier(Kind(segments[0]), namespace, name) != text:
        return None
    return ArdName(Kind(segments[0]), capability_id(namespace, name))


def publisher(namespace: str) -> str:
    """The namespace as a host name."""
    host = ".".join(reversed(namespace.split(".")))
    return host + _RESERVED if "." not in host or host.endswith(_RESERVED) else host


def namespace_of(domain: str) -> str | None:
    """The namespace of a publisher; None if `publisher` never returns this host name."""
    namespace = ".".join(reversed(domain.removesuffix(_RESERVED).split(".")))
    return namespace if publisher(namespace) == domain else None


def _unescape(text: str) -> str | None:
    """The unescaped name; None if an escape is no valid character."""
    try:
        name = _ESCAPED.sub(lambda found: "/" if found[0] == ":" else chr(int(found[1], 16)), text)
        name.encode()
    except (ValueError, OverflowError):  # beyond Unicode, or half a character
        return None
    return name
