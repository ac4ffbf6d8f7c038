"""The texts of settings: what they may be, and the values that they stand for."""

import re
from pathlib import Path
from urllib.parse import urlsplit


def is_prior(text: str) -> bool:
    """Whether a text is a trust prior: 0 to 100, or `none`."""
    return text == "none" or bool(re.fullmatch(r"\d{1,2}|100", text))


def is_version(text: str) -> bool:
    """Whether a text is a major and a minor number."""
    return bool(re.fullmatch(r"\d+\.\d+", text))


def is_address(text: str, *, plain_http: bool = False) -> bool:
    """Whether a text is an https address, or an http one on this machine; `plain_http`: on any machine."""
    try:
        address = urlsplit(text)
        host, _ = address.hostname, address.port
    except ValueError:
        return False
    loopback = host in ("127.0.0.1", "::1", "localhost")
    return bool(host) and (address.scheme == "https" or (address.scheme == "http" and (loopback or plain_http)))


def is_base_address(text: str, *, plain_http: bool = False) -> bool:
    """The same for an address that paths are appended to: printable, without user, query or fragment."""
    plain = text.isascii() and text.isprintable() and not set(text) & set("@?# ")
    return plain and is_address(text, plain_http=plain_http)


_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}


def parse_value(text: str, default: object) -> object:
    """Parse the text of a setting to the type of its default.

    Raises:
        ValueError: the message is the expected form.
    """
    if isinstance(default, bool):
        if text.lower() not in _FLAGS:
            raise ValueError("true or false")
        return _FLAGS[text.lower()]
    if isinstance(default, int):
        if not text.strip().lstrip("+-").isdecimal():
            raise ValueError("a whole number")
        return int(text)
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text if isinstance(default, str) else Path(text)


def to_text(value: object) -> str:
    """The text that `parse_value` reads as this value."""
    if isinstance(value, bool):
        return str(int(value))
    return ",".join(value) if isinstance(value, tuple) else str(value)
