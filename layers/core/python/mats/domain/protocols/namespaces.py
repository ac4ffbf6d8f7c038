"""Namespaces from what names an owner: addresses, reverse-domain names and titles."""

import hashlib
import ipaddress
import re
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlsplit

from mats.domain.text.words import word_set

_SHARED = {
    "github.com": "io.github", "raw.githubusercontent.com": "io.github", "gist.githubusercontent.com": "io.github",
    "gitlab.com": "com.gitlab", "bitbucket.org": "org.bitbucket",
    "huggingface.co": "co.huggingface", "codeberg.org": "org.codeberg",
}  # fmt: skip
"""Hosts shared by many owners: the first part of the path names the owner."""
_SCHEMES = ("http", "https", "ws", "wss", "grpc")
_LONGEST_LABEL, _LONGEST = 63, 200
_MOST_WORDS = 3
_TITLE_NOISE = word_set(
    "a an the and for of to with official public open openapi swagger api apis rest restful http https json "
    "web spec specs specification definition definitions documentation docs reference service services extension "
    "extensions version inc llc gmbh ltd"
)
"""Words of titles that tell no API from another."""
_LOCAL_NAMES = word_set("localhost local localdomain internal lan home arpa invalid")
"""Last labels of host names that are not global."""


def to_label(text: str) -> str:
    """A text as a label of a namespace: a-z, 0-9 and `-`; a hash where no letter is left; empty for an empty text."""
    label = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if len(label) > _LONGEST_LABEL or (text.strip() and not label):
        mark = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:10]
        return f"{label[: _LONGEST_LABEL - 11]}-{mark}".lstrip("-")
    return label


def label_of_title(title: str, home: str) -> str:
    """The words of a title that distinguish an API from others of its host, at most three; empty if it adds none.

    `The official Claims API (v2)` becomes `claims`; of the home `com.acme.claims` it becomes empty.
    """
    known = _TITLE_NOISE.union(re.split(r"[.-]", home))
    words = re.findall(r"[a-z0-9]+", re.sub(r"['’]s\b", "", title.lower()))
    telling = [word for word in words if word not in known and not re.fullmatch(r"v?[0-9]+", word)]
    return to_label(" ".join(telling[:_MOST_WORDS])) if words else to_label(title)


def namespace_of_domain(text: str) -> str:
    """A reverse-domain name as a namespace: `io.github.Someone` becomes `io.github.someone`."""
    return join_labels(to_label(part) for part in text.split("."))


def join_labels(labels: Iterable[str]) -> str:
    """Join labels that are not empty, truncated to the longest namespace."""
    return ".".join(part for part in labels if part)[:_LONGEST].rstrip(".-")


def namespace_of_url(*urls: str) -> str:
    """The namespace of the first address with a global host: its host reversed; empty if there is none."""
    return next((namespace for url in urls if (namespace := _namespace_of(url))), "")


def _namespace_of(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return ""
    is_address = is_ip(host) or re.fullmatch(r"[0-9.]+", host)
    is_global = "." in host and not is_address and host.rpartition(".")[2] not in _LOCAL_NAMES
    if parts.scheme.lower() not in _SCHEMES or not is_global:
        return ""
    host = host.removeprefix("www.")
    if host in _SHARED:
        owner = to_label(parts.path.strip("/").partition("/")[0])
        return f"{_SHARED[host]}.{owner}" if owner else ""
    return join_labels(_host_label(part) for part in reversed(host.split(".")))


def is_ip(text: str) -> bool:
    """True if a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _host_label(part: str) -> str:
    """A label of a host name in punycode, with every other character replaced."""
    with suppress(UnicodeError):
        part = part.encode("idna").decode()
    return re.sub(r"[^a-z0-9-]", "-", part.lower())[:_LONGEST_LABEL]
