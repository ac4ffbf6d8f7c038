"""A strict stand-in for S3: conditional writes, versions with delete markers, listings in pages, over HTTP.

It does what the documentation of S3 says: a write or a deletion is seen by every read that begins after it, and a write
with `If-None-Match: *` succeeds for one writer only. Faults can be put in its way.
"""

import hashlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.aws.listening import LoopbackServer, QuietConnection

_PAGE = 1_000


class Version(NamedTuple):
    """Of an object; without a body it is a delete marker."""

    id: str
    body: bytes | None
    tag: str


class Failed(Exception):
    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


Fault = Callable[[str, str, bool], str]
"""Gets method, key and whether the operation is done; `drop` ends the connection without a response."""


@dataclass
class S3:
    """The objects of one bucket, their versions oldest first, and a server of them."""

    objects: dict[str, list[Version]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    fault: Fault | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    page: int = _PAGE

    @property
    def current(self) -> dict[str, Version]:
        latest = {key: versions[-1] for key, versions in self.objects.items() if versions}
        return {key: latest[key] for key in sorted(latest, key=str.encode) if latest[key].body is not None}

    def put(self, key: str, body: bytes, if_match: str | None, if_none_match: str | None) -> Version:
        with self.lock:
            there = self.current.get(key)
            if if_none_match not in (None, "*"):
                raise Failed(501, "NotImplemented")
            if if_none_match and there:
                raise Failed(412, "PreconditionFailed")
            if if_match and not there:
                raise Failed(404, "NoSuchKey")
            if if_match and there and there.tag != if_match:
                raise Failed(412, "PreconditionFailed")
            return self._add(key, body)

    def delete(self, key: str) -> None:
        with self.lock:
            self._add(key, None)

    def destroy(self, key: str) -> None:
        """Every version, as an operator may."""
        with self.lock:
            self.objects.pop(key, None)

    def _add(self, key: str, body: bytes | None) -> Version:
        digest = hashlib.md5(body or b"", usedforsecurity=False).hexdigest()
        made = Version(f"v{sum(map(len, self.objects.values())) + 1}", body, f'"{digest}"')
        self.objects.setdefault(key, []).append(made)
        return made

    def get(self, key: str, version: str | None) -> Version:
        if version:
            found = next((each for each in self.objects.get(key, ()) if each.id == version), None)
            if not found or found.body is None:
                raise Failed(404, "NoSuchVersion")
            return found
        if key not in self.current:
            raise Failed(404, "NoSuchKey")
        return self.current[key]

    def list(self, prefix: str, after: str) -> tuple[list[str], bool]:
        with self.lock:
            found = [key for key in self.current if key.startswith(prefix) and key.encode() > after.encode()]
        return found[: self.page], len(found) > self.page

    @contextmanager
    def serving(self) -> Iterator[str]:
        with LoopbackServer(type("Bound", (_Handler,), {"bucket": self})) as server:
            yield server.url


class _Handler(QuietConnection):
    bucket: S3

    def _answer(self) -> None:
        at = urlsplit(self.path)
        query = dict(parse_qsl(at.query, keep_blank_values=True))
        key = unquote(at.path).strip("/").partition("/")[2]
        body = self.content()
        assert "aws-chunked" not in self.headers.get("Content-Encoding", ""), "not played"
        self.bucket.calls.append((self.command, key or query.get("prefix", "")))
        if self._broken(key, done=False):
            return
        try:
            status, headers, content = self._do(key, query, body)
        except Failed as failed:
            status, headers = failed.status, {}
            content = f"<Error><Code>{failed.code}</Code><Message>no</Message></Error>".encode()
        if not self._broken(key, done=True):
            self.reply(status, content, headers)

    def _broken(self, key: str, *, done: bool) -> bool:
        if self.bucket.fault and self.bucket.fault(self.command, key, done) == "drop":
            self.close_connection = True
            return True
        return False

    def _do(self, key: str, query: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        bucket, asked = self.bucket, self.headers
        match self.command:
            case "PUT":
                made = bucket.put(key, body, asked.get("If-Match"), asked.get("If-None-Match"))
                return 200, {"ETag": made.tag}, b""
            case "POST" if "delete" in query:
                for each in re.findall(rb"<Key>(.*?)</Key>", body):
                    bucket.delete(each.decode())
                return 200, {}, b"<DeleteResult/>"
            case "GET" if "versions" in query:
                listed = [
                    f"<Version><Key>{escape(name)}</Key><VersionId>{each.id}</VersionId></Version>"
                    for name, versions in sorted(bucket.objects.items())
                    if name.startswith(query["prefix"])
                    for each in reversed(versions)
                    if each.body is not None
                ]
                return 200, {}, f"<ListVersionsResult>{''.join(listed)}</ListVersionsResult>".encode()
            case "GET" if not key:
                after = query.get("continuation-token") or query.get("start-after", "")
                found, more = bucket.list(query.get("prefix", ""), after)
                page = ElementTree.Element("ListBucketResult")
                ElementTree.SubElement(page, "IsTruncated").text = str(more).lower()
                if more:
                    ElementTree.SubElement(page, "NextContinuationToken").text = found[-1]
                for name in found:
                    ElementTree.SubElement(ElementTree.SubElement(page, "Contents"), "Key").text = name
                return 200, {}, ElementTree.tostring(page)
            case "GET":
                found_version = bucket.get(key, query.get("versionId"))
                return 200, {"ETag": found_version.tag}, found_version.body or b""
        raise Failed(405, "MethodNotAllowed")

    do_GET = do_PUT = do_POST = _answer  # noqa: N815 - the names of the server


def main() -> None:
    with S3().serving() as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
