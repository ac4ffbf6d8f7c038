"""A deadline for a whole HTTP exchange: botocore's read timeout starts anew with every part that arrives."""

import io
import time
from collections.abc import Iterator
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from urllib3.exceptions import HTTPError

_PART = 65_536
_MOST_BYTES = 32_000_000
"""Far beyond any reply; a body without an end must not fill the memory."""


class Timed:
    """Botocore's HTTP session, which gives a body up when a part of it arrives too late, or too much of it.

    The session's own timeout still holds for each part, so the end may be that much later.
    """

    def __init__(self, session: Any, seconds: float) -> None:
        self._session, self._seconds = session, seconds

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        """The response, its body read.

        Raises:
            ReadTimeoutError: the body was not there in time.
            ConnectionClosedError: it broke off, or would not end.
        """
        deadline = time.monotonic() + self._seconds
        request.stream_output = True  # hands over the body unread
        response = self._session.send(request)
        body = b"".join(self._parts(response.raw, request.url, deadline))
        return AWSResponse(response.url, response.status_code, response.headers, _Read(body))

    def close(self) -> None:
        """Let go of the connections."""
        self._session.close()

    def _parts(self, raw: Any, url: str, deadline: float) -> Iterator[bytes]:
        size = 0
        while part := _next(raw, url):
            size += len(part)
            late = time.monotonic() > deadline
            if late or size > _MOST_BYTES:
                raw.close()
                raise ReadTimeoutError(endpoint_url=url) if late else ConnectionClosedError(endpoint_url=url)
            yield part


def _next(raw: Any, url: str) -> bytes:
    """What has arrived by now; nothing at the end."""
    try:
        part: bytes = raw.read1(_PART)
    except (HTTPError, OSError) as error:
        raise ConnectionClosedError(endpoint_url=url, error=error) from error
    return part


class _Read(io.BytesIO):
    """A body that has been read, as botocore wants to read it."""

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.read()
