"""What every client of AWS shares: how it is made, and what its errors mean to us."""

import threading
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    LoginError,
    NoCredentialsError,
    PartialCredentialsError,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from mats.domain.errors import DependencyFailed, NotPermitted
from mats.domain.text import clip

T = TypeVar("T")

BAD_CREDENTIALS = frozenset(
    (
        "ExpiredToken ExpiredTokenException UnrecognizedClientException InvalidClientTokenId InvalidSignatureException "
        "IncompleteSignature MissingAuthenticationToken MissingAuthenticationTokenException"
    ).split()
)
"""Error codes of any service that fresh credentials mend."""
UNSIGNED = (
    CredentialRetrievalError, LoginError, NoCredentialsError, PartialCredentialsError, SSOError, TokenRetrievalError,
)  # fmt: skip
"""What botocore raises when it finds no credentials to sign with."""
MALFORMED = (ResponseParserError, AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError)
"""What botocore's parser lets out when an answer holds something of another shape than the service model's."""
_MENDED_BY_AN_OPERATOR = frozenset("AccessDeniedException AccessDenied ResourceNotFoundException".split())
_MAKING = threading.Lock()
"""A session makes one client at a time."""


def session(called: str) -> Session:
    """AWS's own settings and credentials, and what botocore has read: to be shared, as reading takes a while.

    Raises:
        NotPermitted: the settings cannot be used; the message says what cannot be asked for that, as it is `called`.
    """
    try:
        return Session()
    except BotoCoreError as error:
        raise NotPermitted(f"{called} cannot be asked: {error}; mend AWS_PROFILE or AWS's settings") from error


def client(
    service: str,
    *,
    region: str,
    timeout_s: float,
    attempts: int,
    connections: int,
    called: str = "",
    session: Session | None = None,
) -> Any:
    """A client of a service; no call is made.

    Args:
        service: As boto3 spells it.
        region: Empty: the one that AWS's own settings name.
        timeout_s: For a connection, and for each part of a reply.
        attempts: How often the SDK tries; above 1 it waits in between.
        connections: Kept open for reuse; as many as calls run at once.
        called: What people call the service, if not as boto3 does.
        session: Shared with other clients; default: a new one.

    Raises:
        NotPermitted: AWS's own settings cannot be used; the message says what is missing.
    """
    config = Config(
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=connections,
    )
    try:
        with _MAKING:
            return (session or Session()).client(service, region_name=region or None, config=config)
    except (BotoCoreError, ValueError) as error:
        reason = f"{called or service} cannot be asked: {str(error).rstrip('.')}"
        raise NotPermitted(f"{reason}. Set AWS_REGION, or AWS_PROFILE to one that has it") from error


def answered(what: str, call: Callable[[], T], *, answers: Collection[str] = ()) -> T:
    """The answer to a call, its errors as errors of ours that name `what` was asked.

    Raises:
        ClientError: its code is one of `answers`, which are no failures.
        DependencyFailed: there was none; NotPermitted if an operator has to mend that.
    """
    try:
        return call()
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in answers:
            raise
        raise refusal(what, error) from error
    except UNSIGNED as error:
        raise NotPermitted(f"{what}: {error}; give AWS credentials, for example with `aws sso login`") from error
    except (BotoCoreError, HTTPError) as error:
        raise DependencyFailed(f"{what} did not answer: {clip(str(error), 300)}") from error
    except MALFORMED as error:
        raise unreadable(what) from error


def unreadable(what: str) -> DependencyFailed:
    """What an answer of another shape than the service's means to us."""
    return DependencyFailed(f"{what}: what answered is not the service it should be; see proxies and endpoint settings")


def refusal(what: str, error: ClientError) -> DependencyFailed:
    """What a service's error means to us."""
    told = error.response.get("Error", {})
    code, said = str(told.get("Code")), clip(str(told.get("Message") or ""), 300)
    if code in BAD_CREDENTIALS:
        return NotPermitted(f"{what}: the AWS credentials are expired or not valid ({code}: {said}); renew them")
    if code in _MENDED_BY_AN_OPERATOR:
        return NotPermitted(f"{what} cannot be used ({code}: {said}); see the policies of the caller and the stacks")
    return DependencyFailed(f"{what} did not answer ({code}: {said})")
