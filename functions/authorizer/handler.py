"""API Gateway token -> verified claims -> policy."""

import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from functools import cache
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

import jwt

from mats.settings import Settings

LOGGER = logging.getLogger("mats")
LONGEST_TOKEN = 8192
_KINDS = {"RS256": ("RSA", None), "ES256": ("EC", "P-256")}
"""The algorithms accepted, with the type and the curve of their keys. Each needs a private key to sign."""
_BEARER = re.compile(r"bearer +([\w-]+\.[\w-]+\.[\w-]+) *", re.IGNORECASE | re.ASCII)
_ARN = re.compile(r"(arn:[\w-]+:execute-api:[\w-]*:\d*:\w+/[\w$-]+)/.*", re.ASCII | re.DOTALL)
_SKEW_S = 30
"""How far the issuer's clock may be from ours."""
_FETCH_S = 2.0
_LARGEST_DOCUMENT = 256 * 1024
_SMALLEST_RSA_BITS = 2048
_LONGEST_SUBJECT = 255  # OpenID Connect Core 1.0, section 2


class Unauthorized(Exception):
    """What API Gateway turns into 401: it knows it by exactly this message."""

    def __init__(self) -> None:
        super().__init__("Unauthorized")


class Refused(Exception):
    """Why a token is not accepted; for the log, never for the caller."""


class NotFetched(Exception):
    """The issuer's keys cannot be had now."""


class IssuerKeys:
    """The issuer's public keys.

    They are fetched when first asked for, when they are old, and when a token names a key that is not among them, which
    is how a rotation shows; but never sooner than a pause after the last attempt, so that forged key names cannot make
    us ask in a loop. An issuer that does not answer leaves us with the keys we have.
    """

    OLD_S = 3600.0
    PAUSE_S = 10.0

    def __init__(self, issuer: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched = self._tried = float("-inf")

    def key(self, name: str) -> jwt.PyJWK:
        """The key of this name.

        Raises:
            Refused: the issuer has none, or has not answered yet.
        """
        now = self._clock()
        wanted = name not in self._keys or now - self._fetched >= self.OLD_S
        if wanted and now - self._tried >= self.PAUSE_S:
            self._tried = now
            try:
                self._keys = _keys_of(self._issuer)
                self._fetched = now
            except NotFetched as error:
                LOGGER.error("the keys of %s cannot be fetched: %s", self._issuer, error)
        if name not in self._keys:
            raise Refused("the issuer has no such key")
        return self._keys[name]


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """What AWS calls."""
    settings, keys = _wired()
    return respond(event, settings, keys)


def respond(event: Mapping[str, Any], settings: Settings, keys: IssuerKeys) -> dict[str, Any]:
    """The policy for the bearer of a valid token, for every method of the stage because API Gateway keeps it for all.

    Raises:
        Unauthorized: there is none, or it is not valid; the log says why.
    """
    try:
        stage = _stage(event.get("methodArn"))
        claims = verified(_token(event.get("authorizationToken")), settings, keys)
        return {
            "principalId": _subject(claims),
            "policyDocument": {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": f"{stage}/*"}],
            },
            "context": {"audiences": ",".join(audiences(claims.get(settings.jwt_claim)))},
        }
    except Refused as error:
        LOGGER.warning("a token was refused: %s", error)
        raise Unauthorized from error


def verified(token: str, settings: Settings, keys: IssuerKeys) -> dict[str, Any]:
    """The claims of a token that this issuer signed for this audience and that is valid now.

    Raises:
        Refused: it is not; the message says why.
    """
    try:
        header = jwt.get_unverified_header(token)
        algorithm, name = header.get("alg"), header.get("kid")
        if algorithm not in _KINDS or not isinstance(name, str):
            raise Refused("signed by an algorithm that is not accepted, or without the name of a key")
        key = keys.key(name)
        if key.algorithm_name != algorithm:
            raise Refused("signed by another algorithm than its key is for")
        return jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=settings.jwt_audience,
            issuer=settings.jwt_issuer,
            leeway=_SKEW_S,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


def audiences(claim: object) -> list[str]:
    """The audiences of a claim: a list of names or a text of names between spaces; none if there is no claim.

    Raises:
        Refused: it is something else, or a name could be taken for two, since they travel on between commas.
    """
    names = claim.split() if isinstance(claim, str) else [] if claim is None else claim
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refused("its audiences are neither a list of names nor a text")
    if not all(name and name == name.strip() and "," not in name and name.isprintable() for name in names):
        raise Refused(
            "the name of an audience is empty, or has a comma, a space at an end or a control character in it"
        )
    return list(dict.fromkeys(names))


def _token(header: object) -> str:
    if not isinstance(header, str) or len(header) > LONGEST_TOKEN:
        raise Refused("no token, or too long a one")
    found = _BEARER.fullmatch(header)
    if not found:
        raise Refused("not a bearer token")
    return found[1]


def _stage(method_arn: object) -> str:
    found = _ARN.fullmatch(method_arn) if isinstance(method_arn, str) else None
    if not found:
        raise Refused("not a call of an API's method")
    return found[1]


def _subject(claims: Mapping[str, Any]) -> str:
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or not subject.isprintable():
        raise Refused("its subject is not a name")
    return subject


def _keys_of(issuer: str) -> dict[str, jwt.PyJWK]:
    """The issuer's keys that can verify, by name.

    Raises:
        NotFetched: the issuer does not answer, or not as OpenID Connect Discovery 1.0 says.
    """
    configuration = _document(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if configuration.get("issuer") != issuer:
        raise NotFetched(f"its configuration is that of {str(configuration.get('issuer'))[:200]!r}")
    listed = _document(str(configuration.get("jwks_uri"))).get("keys")
    keys = [key for key in map(_key, listed if isinstance(listed, list) else []) if key]
    if not keys:
        raise NotFetched("it lists no key for RS256 or ES256")
    return {str(key.key_id): key for key in keys}


def _key(listed: object) -> jwt.PyJWK | None:
    """A listed key, unless it is for something else, is too weak or cannot be read."""
    if not isinstance(listed, dict) or not isinstance(listed.get("kid"), str) or listed.get("use", "sig") != "sig":
        return None
    kind = (listed.get("kty"), listed.get("crv"))
    algorithm = next((name for name, its_kind in _KINDS.items() if its_kind == kind), None)
    if algorithm is None or listed.get("alg", algorithm) != algorithm:
        return None
    try:
        key = jwt.PyJWK(listed, algorithm)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        LOGGER.warning("a key of the issuer cannot be read: %s", error)
        return None
    return None if algorithm == "RS256" and key.key.key_size < _SMALLEST_RSA_BITS else key


class _NoRedirects(HTTPRedirectHandler):
    """The issuer's own address must answer; elsewhere could be anybody."""

    def redirect_request(self, *_: object) -> None:
        return None


def _document(address: str) -> dict[str, Any]:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost")):
        raise NotFetched(f"not an https address: {address[:200]!r}")
    try:
        with build_opener(_NoRedirects).open(address, timeout=_FETCH_S) as answer:
            text = answer.read(_LARGEST_DOCUMENT + 1)
        document = json.loads(text) if len(text) <= _LARGEST_DOCUMENT else None
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        raise NotFetched(f"{address}: {error}") from error
    if not isinstance(document, dict):
        raise NotFetched(f"{address}: not a JSON object, or too large a one")
    return document


@cache
def _wired() -> tuple[Settings, IssuerKeys]:
    """Once per execution environment."""
    settings = Settings.from_env(os.environ)
    return settings, IssuerKeys(settings.jwt_issuer)
