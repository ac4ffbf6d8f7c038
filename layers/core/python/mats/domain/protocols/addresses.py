"""Addresses: redaction for reports and storage, and a block list for connections (SSRF protection)."""

import ipaddress
from urllib.parse import SplitResult, urlsplit

from mats.domain.errors import Fault, Invalid
from mats.domain.protocols.namespaces import is_ip

_BLOCKED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8", "100.100.100.200/32", "169.254.0.0/16", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15",
        "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32", "::/128", "64:ff9b:1::/48", "100::/64",
        "2001::/32", "2002::/16", "fe80::/10", "fd00:ec2::/32", "ff00::/8",
    )
)  # fmt: skip
"""Link-local, cloud metadata, multicast, reserved and tunnel addresses."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # IPv4 addresses translated to IPv6 (RFC 6052)


class Unfetchable(Invalid):
    """An address cannot be fetched, or is blocked."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__([Fault(redact(url), reason)])


class AddressRefused(Exception):
    """A host resolves to a blocked address; the message has the reason."""


def redact(url: str) -> str:
    """An address without user, password, query and fragment, which may be secret."""
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return url[:200]
    return f"{parts.scheme}://{host}{port}{parts.path}"[:200]


def without_query(url: str) -> str:
    """An address without query and fragment, to be stored in a registration: a query often holds a key or a token."""
    return url.partition("#")[0].partition("?")[0]


def split_url(url: str) -> SplitResult:
    """The parts of an http or https address. Raises Unfetchable: it is not an address, or holds credentials."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise Unfetchable(url, "is not a valid address: give one that begins with https:// and a host") from error
    if not usable or any(ord(c) <= 32 or ord(c) > 126 for c in url):
        raise Unfetchable(url, "is not a valid address: use http or https, in ASCII")
    if parts.username or parts.password:
        raise Unfetchable(url, "holds a user name or password: remove it, credentials are never sent")
    return parts


def check_address(address: str, host: str, *, may_be_private: bool) -> None:
    """Check an IP address that a host name resolved to.

    Raises AddressRefused: it is blocked, private and not the service given, or loopback by another name than its own.
    """
    ip = _effective(address)
    if any(ip in network for network in _BLOCKED if network.version == ip.version):
        raise AddressRefused(f"resolves to {ip}, which is blocked: link-local, cloud metadata or reserved")
    names_loopback = host == "localhost" or (is_ip(host) and ipaddress.ip_address(host).is_loopback)
    if ip.is_loopback and not names_loopback:
        raise AddressRefused(f"resolves to this machine ({ip}): give it as localhost or by its address")
    if not may_be_private and ip.is_loopback:
        raise AddressRefused(f"leads to another service of this machine ({ip}), which is blocked")
    if not may_be_private and is_private(address):
        raise AddressRefused(f"leads to another service in a private network ({ip}), which is blocked")


def is_private(address: str) -> bool:
    """True if an IP address is not on the public internet."""
    return not _effective(address).is_global


def _effective(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address that a connection reaches: IPv6 addresses can embed an IPv4 one, mapped or translated."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return (isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped) or ip
