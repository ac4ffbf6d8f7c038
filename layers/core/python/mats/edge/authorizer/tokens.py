"""Bearer tokens to API Gateway policies."""

import re
from collections.abc import Mapping
from typing import Any

import jwt

from mats.edge.authorizer.issuer_keys import ALGORITHMS, LOGGER, IssuerKeys, KeyNotFound
from mats.settings import Settings

MAX_TOKEN = 8192
_BEARER = re.compile(r"bearer +([\w-]+\.[\w-]+\.[\w-]+) *", re.IGNORECASE | re.ASCII)
_ARN = re.compile(r"(arn:[\w-]+:execute-api:[\w-]*:\d*:\w+/[\w$-]+)/.*", re.ASCII | re.DOTALL)
_LEEWAY_S = 30
"""Tolerated difference between the issuer's clock and ours."""
_MAX_SUBJECT = 255  # OpenID Connect Core 1.0, section 2


class Unauthorized(Exception):
    """API Gateway answers 401 if the function fails with exactly this message."""

    def __init__(self) -> None:
        super().__init__("Unauthorized")


class TokenInvalid(Exception):
    """The token is not accepted. The message is for the log, never for the caller."""


def authorize(event: Mapping[str, Any], settings: Settings, keys: IssuerKeys) -> dict[str, Any]:
    """The policy for the bearer of a valid token. It covers all methods of the stage, as API Gateway caches it for all.

    Raises:
        Unauthorized: there is no valid token; the log has the reason.
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

    Raises:
        TokenInvalid: it is not.
    """
    try:
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS or not isinstance(key_id, str):
            raise TokenInvalid(f"token has no `kid`, or an unsupported `alg` ({', '.join(ALGORITHMS)} are)")
        key = keys.get(key_id)
        if key.algorithm_name != algorithm:
            raise TokenInvalid("`alg` is not the algorithm of the key")
        return jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=settings.jwt_audience,
            issuer=settings.jwt_issuer,
            leeway=_LEEWAY_S,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
    except (jwt.PyJWTError, KeyNotFound, ValueError, TypeError, RecursionError) as error:
        raise TokenInvalid(f"{type(error).__name__}: {error}") from error


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

    Raises:
        TokenInvalid: it is something else, or a name contains a comma, which separates the names from here on.
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
