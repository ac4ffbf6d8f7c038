"""Authentication of requests: a bearer token, or an AWS identity that signs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

_SERVICE = "execute-api"


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token of `mats serve` or of the issuer that the API was deployed with (`auth=jwt`); also a function of one."""

    token: str | Callable[[], str] = field(repr=False)

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        """The headers to send, called for every attempt. Raises ValueError: the token is malformed."""
        token = self.token if isinstance(self.token, str) else self.token()
        if not token.isascii() or not token.isprintable() or not token.strip():
            raise ValueError("the token is invalid: it is empty, or has characters that a header cannot have")
        return {**headers, "Authorization": f"Bearer {token.strip()}"}


@dataclass(frozen=True)
class SigV4:
    """Signs as an AWS identity that may call the API (`auth=iam`, the policy for agents).

    Default credentials: those that AWS's own tools would use, looked up once.
    """

    region: str
    credentials: Any = field(default=None, repr=False)
    """botocore credentials, which may be refreshable: `boto3.Session().get_credentials()`."""

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        """Add a signature, which is valid for five minutes. Raises ValueError: there are no credentials."""
        from botocore.auth import SigV4Auth  # noqa: PLC0415 - for SigV4 only
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415

        request = AWSRequest(method, url, headers=dict(headers), data=body)
        SigV4Auth(self.credentials or self._default, _SERVICE, self.region).add_auth(request)
        return dict(request.headers.items())

    @cached_property
    def _default(self) -> Any:
        from botocore.session import Session  # noqa: PLC0415 - for SigV4 only

        found = Session().get_credentials()
        if found is None:
            raise ValueError("no AWS credentials to sign with: set a profile, or pass `credentials`")
        return found


Auth: TypeAlias = Bearer | SigV4
