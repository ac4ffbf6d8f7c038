"""The raw path and the bounded body of Starlette requests."""

from starlette.requests import Request

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
"""For a route that answers unsupported methods itself."""


def raw_path(request: Request) -> str:
    """The path, still percent-encoded."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return raw.decode("latin-1")


async def read_body(request: Request, limit: int) -> bytes:
    """At most `limit` bytes of the body; the rest is read and dropped."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk[: limit - len(content)]
    return bytes(content)
