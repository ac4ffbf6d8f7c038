"""Whose something is: a namespace from what a document says of its owner, by the rules of reversed domain names."""

import hashlib
import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

_SHARED = {
    "github.com": "io.github", "raw.githubusercontent.com": "io.github", "gist.githubusercontent.com": "io.github",
    "gitlab.com": "com.gitlab", "bitbucket.org": "org.bitbucket",
    "huggingface.co": "co.huggingface", "codeberg.org": "org.codeberg",
}  # fmt: skip
"""Hosts of many owners: there the first part of the path says whose it is, and the rest says nothing."""
_LONGEST_LABEL, _LONGEST = 63, 200
_OF_NOBODY = frozenset("localhost local localdomain internal lan home arpa invalid".split())
"""Last labels of names that mean another machine wherever they are read."""

UNKNOWN_OWNER = "the document does not say whose it is: give --namespace, such as com.acme"
"""What is wrong where no namespace can be made."""


def to_label(text: str) -> str:
    """A text in the letters of a namespace; of one without any, a mark that tells it from others; empty for none."""
    made = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if len(made) > _LONGEST_LABEL or (text.strip() and not made):
        mark = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:10]
        return f"{made[: _LONGEST_LABEL - 11]}-{mark}".lstrip("-")
    return made


def namespace_of_domain(text: str) -> str:
    """A reverse-domain name in the letters of a namespace: `io.github.Someone` becomes `io.github.someone`."""
    return join_labels(to_label(part) for part in text.split("."))


def join_labels(labels: Iterable[str]) -> str:
    """Labels that are not empty as one namespace, no longer than one may be."""
    return ".".join(part for part in labels if part)[:_LONGEST].rstrip(".-")


def namespace_of_url(*urls: str) -> str:
    """The namespace of the first address that belongs to somebody: its host reversed; empty if none does."""
    return next((namespace for url in urls if (namespace := _namespace_of(url))), "")


def _namespace_of(url: str) -> str:
    parts = _split(url)
    host = (parts.hostname or "").rstrip(".") if parts else ""
    if not parts or "." not in host or _is_address(host) or host.rpartition(".")[2] in _OF_NOBODY:
        return ""
    host = host.removeprefix("www.")
    if host in _SHARED:
        owner = to_label(parts.path.strip("/").partition("/")[0])
        return f"{_SHARED[host]}.{owner}" if owner else ""
    return join_labels(_clean_host_label(_ascii(part)) for part in reversed(host.split(".")))


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url.strip())
        _ = parts.hostname
    except ValueError:
        return None
    return parts if parts.scheme.lower() in ("http", "https", "ws", "wss", "grpc") else None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return bool(re.fullmatch(r"[0-9.]+", host))
    return True


def _clean_host_label(part: str) -> str:
    """A label of a host name, which has the letters already unless somebody wrote nonsense."""
    return re.sub(r"[^a-z0-9-]", "-", part.lower())[:_LONGEST_LABEL]


def _ascii(part: str) -> str:
    """A label of an international name as it stands in the domain name system."""
    try:
        return part.encode("idna").decode()
    except UnicodeError:
        return part
