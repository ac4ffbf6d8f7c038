"""Making clients of AWS services, and translating their errors."""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from boto3.session import Session
from botocore.awsrequest import AWSRequest
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

from mats.adapters.connections import keep_client_fresh
from mats.domain.errors import DependencyFailed, NotPermitted
from mats.domain.text.words import clip

T = TypeVar("T")

BAD_CREDENTIALS = frozenset(
    (
        "ExpiredToken ExpiredTokenException UnrecognizedClientException InvalidClientTokenId InvalidSignatureException "
        "IncompleteSignature MissingAuthenticationToken MissingAuthenticationTokenException"
    ).split()
)
"""Error codes of any service that fresh credentials resolve."""
UNSIGNED = (
    CredentialRetrievalError, LoginError, NoCredentialsError, PartialCredentialsError, SSOError, TokenRetrievalError,
)  # fmt: skip
"""Raised by botocore when it finds no credentials to sign with."""
MALFORMED = (ResponseParserError, AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError)
"""Raised by botocore's parser for a response that does not have the shape of the service model."""
_DENIED = ("AccessDeniedException", "AccessDenied", "ResourceNotFoundException")
CONNECT_S = 2.0  # A service in the same region accepts a connection within milliseconds, or not at all
_CLIENT_LOCK = threading.Lock()  # A session is not safe to make clients in several threads


def session(what: str) -> Session:
    """A session with the AWS settings of the environment. Clients share it: loading the service models takes time.

    Raises NotPermitted, with `what` needs the session: the settings cannot be used.
    """
    try:
        return Session()
    except BotoCoreError as error:
        raise NotPermitted(f"{what} cannot be called: {error}; correct AWS_PROFILE or the AWS settings") from error


def client(
    service: str,
    *,
    region: str = "",
    timeout_s: float,
    attempts: int = 1,
    connections: int = 10,
    called: str = "",
    session: Session | None = None,
) -> Any:
    """A client of a service, in the region of the AWS settings if none is named; makes no call.

    `timeout_s` is for each read, and for connecting if it is less than 2. With `attempts`, the first among them, the
    SDK retries with backoff; `connections` is the number of concurrent calls, and messages say `called` instead of
    boto3's name of the service. Raises NotPermitted: the AWS settings cannot be used; the message says which.
    """
    config = Config(
        connect_timeout=min(timeout_s, CONNECT_S),
        read_timeout=timeout_s,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=connections,
        tcp_keepalive=True,
    )
    try:
        with _CLIENT_LOCK:
            made = (session or Session()).client(service, region_name=region or None, config=config)
    except (BotoCoreError, ValueError) as error:
        reason = f"{called or service} cannot be called: {str(error).rstrip('.')}"
        raise NotPermitted(f"{reason}. Set AWS_REGION, or AWS_PROFILE to one that has it") from error
    keep_client_fresh(made)
    return made


def open_connection(client: Any) -> None:
    """Connect a client to its service, so that its next call need not; an unsigned request, whose answer is ignored.

    Raises DependencyFailed: the service cannot be reached.
    """
    request = AWSRequest("GET", f"{client.meta.endpoint_url}/").prepare()
    call(str(client.meta.endpoint_url), lambda: client._endpoint.http_session.send(request))


def call(
    what: str,
    operation: Callable[[], T],
    *,
    answers: Collection[str] = (),
    special: Callable[[str, str], DependencyFailed | None] = lambda code, message: None,
) -> T:
    """Run an operation of a client, which messages call `what`, and translate its errors.

    Codes in `answers` are expected results: their ClientError is re-raised. For any other, `special` is asked first,
    with its text. Raises DependencyFailed: there was no answer; NotPermitted if an operator has to act.
    """
    try:
        return operation()
    except ClientError as error:
        body = error.response.get("Error")
        body = body if isinstance(body, Mapping) else {}  # it may have any shape
        code, message = str(body.get("Code")), clip(str(body.get("Message") or ""), 300)
        if code in answers:
            raise
        if known := special(code, message):
            raise known from error
        if code in BAD_CREDENTIALS:
            raise NotPermitted(
                f"{what}: the AWS credentials are expired or not valid ({code}: {message}); renew them"
            ) from error
        if code in _DENIED:
            to_do = "check the policies of the caller and the stacks"
            raise NotPermitted(f"{what} cannot be used ({code}: {message}); {to_do}") from error
        raise DependencyFailed(f"{what} did not answer ({code}: {message})") from error
    except UNSIGNED as error:
        raise NotPermitted(f"{what}: {error}; provide AWS credentials, for example with `aws sso login`") from error
    except (BotoCoreError, HTTPError) as error:  # HTTPError: the body of an error was truncated
        raise DependencyFailed(f"{what} did not answer: {clip(str(error), 300)}") from error
    except MALFORMED as error:
        raise unexpected_response(what) from error


def unexpected_response(what: str) -> DependencyFailed:
    """The error for a response that is not of the service's shape."""
    return DependencyFailed(f"{what}: the response is not one of this service; check proxies and endpoint settings")
