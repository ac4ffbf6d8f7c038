"""A small client of the API, with SigV4 or a bearer token."""

import json
import re
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session

_OF_GATEWAY = re.compile(r"\.execute-api\.([a-z0-9-]+)\.amazonaws\.com")
_TIMEOUT_S = 30


class ApiRefused(Exception):
    """The API rejects the call; a retry would not help."""


class ApiUnavailable(Exception):
    """The API does not answer; a retry may help."""


@dataclass(frozen=True, slots=True)
class Api:
    """The address and the credentials."""

    url: str
    region: str
    credentials: Credentials | None
    token: str = ""

    @classmethod
    def at(cls, url: str, session: Any, *, token: str = "") -> Self:
        """The API at the URL of its stage.

        Raises:
            ValueError: the URL is invalid, or there are no credentials.
        """
        parts = urlsplit(url)
        loopback = parts.hostname in ("127.0.0.1", "localhost")
        if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and loopback)):
            raise ValueError(f"URL must be an https address, not {url!r}")
        in_address = _OF_GATEWAY.search(parts.hostname)
        region = in_address[1] if in_address else session.region_name
        credentials = None if token else session.get_credentials()
        if not token and not (region and credentials):
            raise ValueError("the calls are signed: give AWS credentials and a region, or a token with --token")
        return cls(url.rstrip("/"), region or "", credentials, token)

    def discover(self, query: str, namespace: str) -> list[str]:
        """The ids found in a namespace, best first.

        Raises:
            ApiRefused: the call is rejected.
            ApiUnavailable: the API does not answer.
        """
        body = json.dumps({"query": query, "namespaces": [namespace]})
        request = AWSRequest("POST", f"{self.url}/discover", data=body, headers={"Content-Type": "application/json"})
        self._sign(request)
        try:
            answer = URLLib3Session(timeout=_TIMEOUT_S).send(request.prepare())
        except BotoCoreError as error:
            raise ApiUnavailable(f"{self.url} does not answer ({type(error).__name__})") from error
        return self._ids(answer.status_code, answer.content)

    def _sign(self, request: AWSRequest) -> None:
        if self.token:
            request.headers["Authorization"] = f"Bearer {self.token}"
            return
        try:
            SigV4Auth(self.credentials, "execute-api", self.region).add_auth(request)
        except BotoCoreError as error:
            raise ApiRefused(f"the call cannot be signed: {error}") from error

    def _ids(self, status: int, body: bytes) -> list[str]:
        text = body[:300].decode("utf-8", "replace")
        match status:
            case 200:
                try:
                    return [str(result["id"]) for result in json.loads(body)["results"]]
                except (ValueError, KeyError, TypeError) as error:
                    raise ApiRefused(f"{self.url} answers, but not as discovery does: {text}") from error
            case 401:
                raise ApiRefused(f"the API rejects the token (401: {text}); is it for this issuer and audience?")
            case 403:
                raise ApiRefused(
                    f"the API rejects the caller (403: {text}); it needs the policy for agents, "
                    "and with auth=jwt a token (--token)"
                )
            case _ if 400 <= status < 500 and status != 429:
                raise ApiRefused(f"the API rejects the query ({status}: {text}); is the URL that of the stage?")
            case _:
                raise ApiUnavailable(f"the API answers {status}: {text}")
