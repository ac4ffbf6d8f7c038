"""What a request brings, as it was sent."""

from starlette.requests import Request

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
"""What a route takes that answers wrong methods itself."""


def raw_path(request: Request) -> str:
    """The path, percent-encoding and all."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return raw.decode("latin-1")


async def body(request: Request, most: int) -> bytes:
    """The body; of an overlong one only so much that it can be refused, but all of it is taken off the wire.

    Raises:
        ClientDisconnect: nobody waits for an answer any more.
    """
    read = bytearray()
    async for chunk in request.stream():
        read += chunk[: most - len(read)]
    return bytes(read)
