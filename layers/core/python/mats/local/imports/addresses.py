"""Addresses: what may be shown and stored of them, and which of them are never connected to (SSRF protection)."""

import ipaddress
from urllib.parse import SplitResult, urlsplit

from mats.domain.errors import Fault, Invalid

_NEVER = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8", "100.100.100.200/32", "169.254.0.0/16", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15",
        "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32", "::/128", "64:ff9b:1::/48", "100::/64",
        "2001::/32", "2002::/16", "fe80::/10", "fd00:ec2::/32", "ff00::/8",
    )
)  # fmt: skip
"""Link-local and metadata addresses of clouds, and those that stand for other ones or for nothing."""

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""What IPv4 addresses are called in networks that have none (RFC 6052)."""


class Unfetchable(Invalid):
    """An address cannot be read, or must not be."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__([Fault(redact(url), why)])


def is_address(text: str) -> bool:
    """Whether somebody means an address and not a file."""
    return text.lower().startswith(("http://", "https://"))


def redact(url: str) -> str:
    """An address without what may be secret in it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return url[:200]
    return f"{parts.scheme}://{host}{port}{parts.path}"[:200]


def without_query(url: str) -> str:
    """As much of an address as may be registered for everybody to read: a query often holds a key or a token."""
    return url.partition("#")[0].partition("?")[0]


def split_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise Unfetchable(url, "is no address") from error
    if not usable or any(ord(c) <= 32 or ord(c) > 126 for c in url):
        raise Unfetchable(url, "is no address that can be asked: http or https, in ASCII")
    if parts.username or parts.password:
        raise Unfetchable(url, "has a name or password in it, which is not sent")
    return parts


def port_of(parts: SplitResult) -> int:
    return 443 if parts.scheme == "https" else 80


def refusal(address: str, host: str, *, given: bool) -> str:
    """Why this address is not asked; empty if it may be."""
    ip = _plain(address)
    if any(ip in network for network in _NEVER if network.version == ip.version):
        return f"is at {ip}, an address that is never asked: link-local, of a cloud's metadata, or of no host"
    if ip.is_loopback and not (given and _names_loopback(host)):
        return f"leads to this machine ({ip}), which is only asked when it is given as localhost or by its address"
    if is_private(address) and not given:
        return f"leads into a private network ({ip}) from outside"
    return ""


def _names_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(address: str) -> bool:
    return not _plain(address).is_global


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address that is meant: an IPv6 one may hold an IPv4 one, mapped or translated."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip in _TRANSLATED:
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return (isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped) or ip
