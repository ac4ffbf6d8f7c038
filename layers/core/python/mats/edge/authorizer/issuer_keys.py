"""The public keys of a token issuer: fetching, checking and caching them (docs/decisions/0019)."""

import json
import logging
import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

import jwt

LOGGER = logging.getLogger("mats")
ALGORITHMS = {"RS256": ("RSA", None), "ES256": ("EC", "P-256")}
"""The accepted algorithms, with the type and the curve of their keys. Signing with them needs a private key."""
_TIMEOUT_S = 2.0
_MAX_DOCUMENT_BYTES = 256 * 1024
_MIN_RSA_BITS = 2048


class KeyNotFound(Exception):
    """The issuer has no such key, or its keys have never been fetched."""


class FetchFailed(Exception):
    """The issuer did not answer, or not as OpenID Connect Discovery 1.0 specifies."""


class IssuerKeys:
    """A cache of the issuer's keys.

    They are fetched at first use, when they are older than `LIFESPAN_S`, and for an unknown key id, which signals a
    rotation; but never within `PAUSE_S` of the last attempt, so that forged key ids cannot cause a loop of requests.
    While the issuer is down, the cached keys stay valid.
    """

    LIFESPAN_S = 3600.0
    PAUSE_S = 10.0

    def __init__(self, issuer: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")

    def get(self, key_id: str) -> jwt.PyJWK:
        """The key with this id.

        Raises:
            KeyNotFound: it is neither cached nor could it be fetched.
        """
        now = self._clock()
        outdated = key_id not in self._keys or now - self._fetched_at >= self.LIFESPAN_S
        if outdated and now - self._tried_at >= self.PAUSE_S:
            self._tried_at = now
            try:
                self._keys = fetch_keys(self._issuer)
                self._fetched_at = now
            except FetchFailed as error:
                LOGGER.error("fetching the keys of %s failed: %s", self._issuer, error)
        if key_id not in self._keys:
            raise KeyNotFound("the issuer has no key with this `kid`")
        return self._keys[key_id]


def fetch_keys(issuer: str) -> dict[str, jwt.PyJWK]:
    """The issuer's keys that can verify signatures, by id.

    Raises:
        FetchFailed: there are none, or they cannot be fetched.
    """
    configuration = _fetch_document(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if configuration.get("issuer") != issuer:
        raise FetchFailed(f"its configuration names another issuer: {str(configuration.get('issuer'))[:200]!r}")
    documents = _fetch_document(str(configuration.get("jwks_uri"))).get("keys")
    keys = [key for key in map(_parse_key, documents if isinstance(documents, list) else []) if key]
    if not keys:
        raise FetchFailed("it lists no key for RS256 or ES256")
    return {str(key.key_id): key for key in keys}


def _parse_key(document: object) -> jwt.PyJWK | None:
    """A key; None if it is for another purpose, too weak, or invalid."""
    if not isinstance(document, dict) or not isinstance(document.get("kid"), str):
        return None
    if document.get("use", "sig") != "sig":
        return None
    key_type = (document.get("kty"), document.get("crv"))
    algorithm = next((name for name, its_type in ALGORITHMS.items() if its_type == key_type), None)
    if algorithm is None or document.get("alg", algorithm) != algorithm:
        return None
    try:
        key = jwt.PyJWK(document, algorithm)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        LOGGER.warning("a key of the issuer is invalid: %s", error)
        return None
    return None if algorithm == "RS256" and key.key.key_size < _MIN_RSA_BITS else key


class _NoRedirects(HTTPRedirectHandler):
    """Treats a redirect as an error: the issuer must answer at its own address."""

    def redirect_request(self, *_: object) -> None:
        return None


def _fetch_document(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost")):
        raise FetchFailed(f"not an https URL: {url[:200]!r}")
    try:
        with build_opener(_NoRedirects).open(url, timeout=_TIMEOUT_S) as response:
            text = response.read(_MAX_DOCUMENT_BYTES + 1)
        document = json.loads(text) if len(text) <= _MAX_DOCUMENT_BYTES else None
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        raise FetchFailed(f"{url}: {error}") from error
    if not isinstance(document, dict):
        raise FetchFailed(f"{url}: not a JSON object, or larger than {_MAX_DOCUMENT_BYTES:,} bytes")
    return document
