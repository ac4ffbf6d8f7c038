"""A bucket of S3: whole objects, read and written under conditions."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from botocore.exceptions import ClientError

from mats.adapters.aws import call, client

T = TypeVar("T")

_MISSING = ("NoSuchKey", "NoSuchVersion", "404")
_LOST = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "412", "409")
"""Of a write under a condition: another writer came first, or is in progress."""
_DELETED_TOGETHER = 1_000
_CHUNK = 1 << 20
CONNECTIONS = 16


class Blob(NamedTuple):
    """An object's content, and the tag that changes with it."""

    body: bytes
    tag: str


class Bucket:
    """Objects of one bucket. Safe to share between threads.

    Every call raises DependencyFailed if the bucket did not answer.
    """

    def __init__(self, name: str, *, timeout_s: float = 5.0, attempts: int = 3, **options: Any) -> None:
        """Make the client, with options (region and session) and errors of `aws.client`; makes no call."""
        self.name = name
        self._client = client("s3", timeout_s=timeout_s, attempts=attempts, connections=CONNECTIONS, **options)

    def load(self, key: str, **version: str) -> Blob | None:
        """An object; None if there is none."""

        def get() -> Blob:
            answer = self._client.get_object(Bucket=self.name, Key=key, **version)
            return Blob(answer["Body"].read(), answer["ETag"])

        return self._call(get, _MISSING)

    def load_deleted(self, key: str) -> Blob | None:
        """The newest version of an object that was deleted, where the bucket keeps versions."""
        found = self._call(lambda: self._client.list_object_versions(Bucket=self.name, Prefix=key))
        versions = [each["VersionId"] for each in (found or {}).get("Versions", ()) if each["Key"] == key]
        return self.load(key, VersionId=versions[0]) if versions else None

    def download(self, key: str, path: Path) -> bool:
        """Write an object into a file; False if there is none."""

        def get() -> bool:
            body = self._client.get_object(Bucket=self.name, Key=key)["Body"]
            path.touch(0o600)
            with path.open("wb") as file:
                for chunk in body.iter_chunks(_CHUNK):
                    file.write(chunk)
            return True

        return bool(self._call(get, _MISSING))

    def write(self, key: str, body: bytes | IO[bytes], *, over: str = "") -> bool:
        """Create an object, or replace the one with this tag; False if another writer came first.

        A repetition after a lost reply is False, too.
        """
        condition = {"IfMatch": over} if over else {"IfNoneMatch": "*"}
        return bool(
            self._call(lambda: self._client.put_object(Bucket=self.name, Key=key, Body=body, **condition), _LOST)
        )

    def keys(self, prefix: str, *, after: str = "") -> Iterator[str]:
        """Every key with a prefix, in order, only those after this one."""
        start = {"StartAfter": after} if after else {}
        listing = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix, **start)
        pages = iter(listing)
        while page := self._call(lambda: next(pages, None)):
            yield from (each["Key"] for each in page.get("Contents", ()))

    def delete(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _DELETED_TOGETHER):
            named = [{"Key": key} for key in keys[start : start + _DELETED_TOGETHER]]
            self._call(partial(self._client.delete_objects, Bucket=self.name, Delete={"Objects": named, "Quiet": True}))

    def _call(self, operation: Callable[[], T], answers: Sequence[str] = ()) -> T | None:
        """The result; None for one of these error codes."""
        try:
            return call(f"the bucket {self.name}", operation, answers=answers)
        except ClientError:
            return None
