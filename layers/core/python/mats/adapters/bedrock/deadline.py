"""A deadline for a whole HTTP exchange: botocore's read timeout restarts with every chunk that arrives."""

import io
import time
from collections.abc import Iterator
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from urllib3.exceptions import HTTPError

_CHUNK = 65_536
_MAX_BYTES = 32_000_000
"""Far beyond any reply; bounds the memory that an endless body can take."""


class DeadlineSession:
    """An HTTP session of botocore with a deadline and a size limit for the response body.

    The session's own timeout still applies to each chunk, so a response may take that much longer.
    """

    def __init__(self, session: Any, seconds: float) -> None:
        self._session, self._seconds = session, seconds

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        """The response with its body in memory.

        Raises:
            ReadTimeoutError: the body was not complete before the deadline.
            ConnectionClosedError: the body was truncated or too large.
        """
        deadline = time.monotonic() + self._seconds
        request.stream_output = True  # the session returns the body unread
        response = self._session.send(request)
        body = b"".join(self._chunks(response.raw, request.url, deadline))
        return AWSResponse(response.url, response.status_code, response.headers, _BufferedBody(body))

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _chunks(self, raw: Any, url: str, deadline: float) -> Iterator[bytes]:
        size = 0
        while chunk := _next_chunk(raw, url):
            size += len(chunk)
            late = time.monotonic() > deadline
            if late or size > _MAX_BYTES:
                raw.close()
                raise ReadTimeoutError(endpoint_url=url) if late else ConnectionClosedError(endpoint_url=url)
            yield chunk


def _next_chunk(raw: Any, url: str) -> bytes:
    """The bytes that have arrived; empty at the end."""
    try:
        chunk: bytes = raw.read1(_CHUNK)
    except (HTTPError, OSError) as error:
        raise ConnectionClosedError(endpoint_url=url, error=error) from error
    return chunk


class _BufferedBody(io.BytesIO):
    """A body in memory with the `stream` method that botocore calls."""

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.read()
