"""Kind, lifecycle and id of a capability."""

import re
from enum import StrEnum
from functools import lru_cache
from typing import NewType
from urllib.parse import quote

Id = NewType("Id", str)  # `namespace/name`. The namespace has no slash; the name may have some.


class Kind(StrEnum):
    """The four kinds of capability."""

    MODEL = "model"
    AGENT = "agent"
    TOOL = "tool"
    SKILL = "skill"


class Lifecycle(StrEnum):
    """Deprecated capabilities stay in results, marked, and rank below an equal active one."""

    ACTIVE = "active"
    DEPRECATED = "deprecated"


_ESCAPES = {"%": "%25", "/": "%2F", "~": "%7E", "#": "%23"}
"""Escapes in namespaces: the slash separates the name; `~` and `#` start the keys of internal rows."""
_ESCAPED = str.maketrans(_ESCAPES)


def capability_id(namespace: str, name: str) -> Id:
    """The id of a capability.

    An invalid namespace may contain reserved characters; escaping them keeps its id distinct.
    """
    return Id(f"{_escape(namespace)}/{name}")


@lru_cache(maxsize=4_096)
def _escape(namespace: str) -> str:
    return namespace.translate(_ESCAPED)


def parts(id: str) -> tuple[str, str]:
    """Namespace and name of an id; the name is empty where there is no slash."""
    namespace, _, name = id.partition("/")
    for character, escape in reversed(_ESCAPES.items()):
        namespace = namespace.replace(escape, character)
    return namespace, name


def quote_id(id: str) -> str:
    """An id in a path of the API, with its slashes escaped if the path would otherwise be normalized."""
    normalizable = any(part in ("", ".", "..") for part in id.split("/"))
    return quote(id, safe="" if normalizable else "/", errors="replace")


_SESSION = re.compile(r"arn:(?P<partition>[\w-]+):sts::(?P<account>\d+):assumed-role/(?P<role>[^/]+)(?:/.*)?")


def principal(arn: str) -> str:
    """The ARN of a session's role without its path, for the ARN of the session; any other ARN as it is.

    A session's ARN lacks the path of its role. The name alone identifies the role: IAM's role names are unique in an
    account, whatever their paths.
    """
    found = _SESSION.fullmatch(arn)
    return f"arn:{found['partition']}:iam::{found['account']}:role/{found['role']}" if found else arn
