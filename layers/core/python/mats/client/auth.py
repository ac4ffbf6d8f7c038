"""Who asks: nobody in particular on this machine, the bearer of a token, or an AWS identity that signs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

_SERVICE = "execute-api"


class Auth(Protocol):
    """What makes a request somebody's."""

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        """The headers to send instead of these, made anew for every attempt.

        Raises:
            ValueError: there is nothing to sign with; the message says what is missing.
        """
        ...


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token of the issuer that the API was deployed with (`auth=jwt`), or what fetches a fresh one."""

    token: str | Callable[[], str] = field(repr=False)

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        """With the token."""
        token = self.token if isinstance(self.token, str) else self.token()
        if not token.isascii() or not token.isprintable() or not token.strip():
            raise ValueError("the token is not one: it is empty, or holds what no header can")
        return {**headers, "Authorization": f"Bearer {token.strip()}"}


@dataclass(frozen=True, slots=True)
class SigV4:
    """An AWS identity that may call the API (`auth=iam`, the policy for agents).

    Without credentials those that AWS's own tools would use are found, once.
    """

    region: str
    credentials: Any = field(default=None, repr=False)
    """botocore's credentials, which may renew themselves: `boto3.Session().get_credentials()`."""
    _found: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        """With a signature that is good for five minutes."""
        from botocore.auth import SigV4Auth  # noqa: PLC0415 - for those who sign
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415

        request = AWSRequest(method, url, headers=dict(headers), data=body)
        SigV4Auth(self._credentials(), _SERVICE, self.region).add_auth(request)
        return dict(request.headers.items())

    def _credentials(self) -> Any:
        if self.credentials is not None:
            return self.credentials
        if not self._found:
            from botocore.session import Session  # noqa: PLC0415 - for those who sign

            found = Session().get_credentials()
            if found is None:
                raise ValueError("no AWS credentials to sign with: set a profile, or pass `credentials`")
            self._found.append(found)
        return self._found[0]
