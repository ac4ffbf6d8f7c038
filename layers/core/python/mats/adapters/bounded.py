"""A response that arrives a piece at a time, read within a deadline and a size: an endless one ends, too."""

import time
from collections.abc import Callable

_CHUNK = 65_536


def read_bounded(read1: Callable[[int], bytes], deadline: float, max_bytes: int) -> bytes:
    """A whole body before a deadline on the monotonic clock, in s. Raises TimeoutError, or OverflowError: too long."""
    body = bytearray()
    while chunk := read1(_CHUNK):
        body += chunk
        if len(body) > max_bytes:
            raise OverflowError(f"the response has more than {max_bytes:,} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(body)
