"""Bearer tokens to API Gateway policies."""

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

import jwt

from mats.settings import Settings

LOGGER = logging.getLogger("mats")
_ALGORITHM_OF: Mapping[object, str] = {("RSA", None): "RS256", ("EC", "P-256"): "ES256"}
"""The accepted algorithms by the type and the curve of their keys. Signing with them needs a private key."""
_TIMEOUT_S = 2.0
_MAX_DOCUMENT_BYTES = 256 * 1024
_MIN_RSA_BITS = 2048
MAX_TOKEN = 8192
_BEARER = re.compile(r"bearer +([\w-]+\.[\w-]+\.[\w-]+) *", re.IGNORECASE | re.ASCII)
_ARN = re.compile(r"(arn:[\w-]+:execute-api:[\w-]*:\d*:\w+/[\w$-]+)/.*", re.ASCII | re.DOTALL)
_LEEWAY_S = 30  # Tolerated difference between the issuer's clock and ours
_MAX_SUBJECT = 255  # OpenID Connect Core 1.0, section 2


class Unauthorized(Exception):
    """API Gateway answers 401 if the function fails with exactly this message."""

    def __init__(self) -> None:
        super().__init__("Unauthorized")


class TokenInvalid(Exception):
    """The token is not accepted. The message is for the log, never for the caller."""


class FetchFailed(Exception):
    """The issuer did not answer, or not as OpenID Connect Discovery 1.0 specifies."""


class _NoRedirects(HTTPRedirectHandler):
    """Treats a redirect as an error: the issuer must answer at its own address."""

    def redirect_request(self, *_: object) -> None:
        return None


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
        """The key with this id. Raises TokenInvalid: it is neither cached nor could it be fetched."""
        now = self._clock()
        outdated = key_id not in self._keys or now - self._fetched_at >= self.LIFESPAN_S
        if outdated and now - self._tried_at >= self.PAUSE_S:
            self._tried_at = now
            try:
                self._keys = self.fetch()
                self._fetched_at = now
            except FetchFailed as error:
                LOGGER.error("fetching the keys of %s failed: %s", self._issuer, error)
        if key_id not in self._keys:
            raise TokenInvalid("the issuer has no key with this `kid`")
        return self._keys[key_id]

    def fetch(self) -> dict[str, jwt.PyJWK]:
        """The keys that can verify signatures, by id. Raises FetchFailed: there are none, or none can be fetched."""
        configuration = self._document(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if configuration.get("issuer") != self._issuer:
            raise FetchFailed(f"its configuration names another issuer: {str(configuration.get('issuer'))[:200]!r}")
        listed = self._document(str(configuration.get("jwks_uri"))).get("keys")
        keys = [key for key in map(self._parse, listed if isinstance(listed, list) else []) if key]
        if not keys:
            raise FetchFailed("it lists no key for RS256 or ES256")
        return {str(key.key_id): key for key in keys}

    @staticmethod
    def _document(url: str) -> dict[str, Any]:
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

    @staticmethod
    def _parse(document: object) -> jwt.PyJWK | None:
        """A key; None if it is for another purpose, too weak, or invalid."""
        if not isinstance(document, dict) or not isinstance(document.get("kid"), str):
            return None
        try:
            algorithm = _ALGORITHM_OF.get((document.get("kty"), document.get("crv")))
            if not algorithm or document.get("use", "sig") != "sig" or document.get("alg", algorithm) != algorithm:
                return None
            key = jwt.PyJWK(document, algorithm)
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            LOGGER.warning("a key of the issuer is invalid: %s", error)
            return None
        return None if algorithm == "RS256" and key.key.key_size < _MIN_RSA_BITS else key


def authorize(event: Mapping[str, Any], settings: Settings, keys: IssuerKeys) -> dict[str, Any]:
    """The policy for the bearer of a valid token. It covers all methods of the stage, as API Gateway caches it for all.

    Raises Unauthorized: there is no valid token; the log has the reason.
    """
    try:
        stage = _stage(event.get("methodArn"))
        claims = verify(_bearer_token(event.get("authorizationToken")), settings, keys)
        return {
            "principalId": _subject(claims),
            "policyDocument": {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": f"{stage}/*"}],
            },
            "context": {"audiences": ",".join(parse_audiences(find_claim(claims, settings.jwt_claim)))},
        }
    except TokenInvalid as error:
        LOGGER.warning("token rejected: %s", error)
        raise Unauthorized from error


def verify(token: str, settings: Settings, keys: IssuerKeys) -> dict[str, Any]:
    """The claims of a token that the issuer signed for our audience and that is valid now.

    Raises TokenInvalid: it is not.
    """
    try:
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in _ALGORITHM_OF.values() or not isinstance(key_id, str):
            raise TokenInvalid(f"token has no `kid`, or an unsupported `alg` ({', '.join(_ALGORITHM_OF.values())} are)")
        key = keys.get(key_id)
        if key.algorithm_name != algorithm:
            raise TokenInvalid("`alg` is not the algorithm of the key")
        claims = jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            issuer=settings.jwt_issuer,
            leeway=_LEEWAY_S,
            options={"require": ["exp", "iss", "sub"], "verify_aud": False},
        )
        _check_audience(claims, settings)
        return claims
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise TokenInvalid(f"{type(error).__name__}: {error}") from error


def _check_audience(claims: Mapping[str, Any], settings: Settings) -> None:
    """A token that names no audience, such as an access token of Cognito, must be of a client that we know.

    Raises TokenInvalid: it is for somebody else.
    """
    if "aud" not in claims:
        if claims.get("client_id") not in settings.jwt_client_ids:
            raise TokenInvalid("the token has no `aud`, and no `client_id` of jwt_client_ids")
        return
    named = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if not settings.jwt_audience or settings.jwt_audience not in named:
        raise TokenInvalid("`aud` does not name our audience")


def find_claim(claims: Mapping[str, Any], name: str) -> object:
    """The claim of this name, else the one that its dots lead to, as in `realm_access.roles`; None without it."""
    if name in claims:  # such as https://example.com/audiences, which has dots, too
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def parse_audiences(claim: object) -> list[str]:
    """The audiences of a claim: a list of names, or names separated by spaces; empty without the claim.

    Raises TokenInvalid: it is something else, or a name contains a comma, which separates the names from here on.
    """
    names = claim.split() if isinstance(claim, str) else [] if claim is None else claim
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TokenInvalid("the audiences are neither a list of names nor a text")
    if not all(name and name == name.strip() and "," not in name and name.isprintable() for name in names):
        raise TokenInvalid("an audience is empty, or has a comma, a control character, or a space at an end")
    return list(dict.fromkeys(names))


def _bearer_token(header: object) -> str:
    if not isinstance(header, str) or len(header) > MAX_TOKEN:
        raise TokenInvalid(f"no token, or longer than {MAX_TOKEN:,} characters")
    match = _BEARER.fullmatch(header)
    if not match:
        raise TokenInvalid("not a bearer token")
    return match[1]


def _stage(method_arn: object) -> str:
    match = _ARN.fullmatch(method_arn) if isinstance(method_arn, str) else None
    if not match:
        raise TokenInvalid("`methodArn` is not the method of an API")
    return match[1]


def _subject(claims: Mapping[str, Any]) -> str:
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT or not subject.isprintable():
        raise TokenInvalid(f"`sub` is not a printable text of 1 to {_MAX_SUBJECT} characters")
    return subject
