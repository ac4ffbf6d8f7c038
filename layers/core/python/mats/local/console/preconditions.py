"""`If-Match` and `If-None-Match` (RFC 9110, 13.1)."""

from mats.ports import Precondition


def precondition(if_match: str | None, if_none_match: str | None) -> Precondition:
    """The precondition of a request's headers; None where a header is absent."""
    expected, excluded = _etags(if_match), _etags(if_none_match)

    def holds(etag: str | None) -> bool:
        if if_match is not None and (etag is None or not expected & {"*", etag}):
            return False
        return if_none_match is None or etag is None or not excluded & {"*", etag}

    return holds


def _etags(header: str | None) -> set[str]:
    """The ETags of a header, without quotes; weak ones never match ours, which are strong."""
    parts = [part.strip() for part in (header or "").split(",")]
    return {part.strip('"') for part in parts if part and not part.startswith("W/")}
