"""Client of an OpenSearch domain: SigV4, pooled connections, translated errors."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from boto3.session import Session
from botocore.exceptions import BotoCoreError
from opensearchpy import OpenSearch, Urllib3AWSV4SignerAuth, Urllib3HttpConnection
from opensearchpy.exceptions import ConnectionTimeout, ImproperlyConfigured, OpenSearchException, TransportError
from urllib3 import Timeout

from mats.adapters import aws
from mats.adapters.aws import MALFORMED, UNSIGNED
from mats.adapters.connections import keep_fresh
from mats.domain.errors import DependencyFailed, NotPermitted, OutOfTime
from mats.domain.text.words import clip

T = TypeVar("T")

_READ_S = 0.6
_CONNECTIONS = 64
WRITE_S = 30
_GONE, _CONFLICT, _FULL = 404, 409, 429


class Missing(DependencyFailed):
    """There is no such index."""


class _FreshConnection(Urllib3HttpConnection):
    """Does not reuse a connection after a long pause."""

    def _create_urllib3_pool(self) -> None:
        super()._create_urllib3_pool()
        keep_fresh(self.pool)


class Domain:
    """A domain by its address. Safe to share between threads.

    Every call raises Missing if there is no such index, and DependencyFailed if the domain did not answer, or not for
    all of the index.
    """

    def __init__(
        self, endpoint: str, *, region: str = "", read_s: float = _READ_S, session: Session | None = None
    ) -> None:
        """Make the client; no call is made. A session can be shared with clients of other services; default: a new one.

        Raises NotPermitted: the AWS settings cannot be used, or have no credentials.
        """
        for name in ("opensearch", "opensearchpy"):  # by default they log the bodies of calls
            logging.getLogger(name).setLevel(logging.CRITICAL)
        session = session or aws.session(endpoint)
        try:
            credentials, region = session.get_credentials(), region or session.region_name or ""
            if credentials is None or not region:
                raise NotPermitted(f"{endpoint} needs AWS credentials and a region: set AWS_PROFILE or AWS_REGION")
            signer = Urllib3AWSV4SignerAuth(credentials, region, "es")
        except BotoCoreError as error:
            raise NotPermitted(f"{endpoint} cannot be called: {error}; correct the AWS settings") from error
        address = urlsplit(endpoint)
        secure = address.scheme == "https"
        self._read_s = read_s
        self._client = OpenSearch(
            hosts=[{"host": address.hostname, "port": address.port or (443 if secure else 80)}],
            use_ssl=secure,
            http_auth=signer,
            pool_maxsize=_CONNECTIONS,
            max_retries=1,  # reconnects after the server closed a connection; timeouts are not retried
            retry_on_status=(),
            retry_on_timeout=False,
            connection_class=_FreshConnection,
            timeout=_timeout(WRITE_S),
        )

    def search(
        self,
        parse: Callable[[Mapping[str, Any]], T],
        index: str,
        body: Mapping[str, Any],
        *,
        timeout_s: float | None = None,
        nothing: T | None = None,
    ) -> T:
        """What `parse` makes of the response of one search; `nothing`, if it is given, where there is no such index.

        A response that `parse` cannot read is none: DependencyFailed.
        """
        params = {"request_timeout": _timeout(timeout_s or self._read_s), "allow_partial_search_results": "false"}
        try:
            return self._call(lambda: parse(self._client.search(index=index, body=body, params=params)))
        except Missing:
            if nothing is None:
                raise
            return nothing

    def documents(
        self, index: str, keys: Sequence[str], *, fields: str, timeout_s: float | None = None
    ) -> list[dict[str, Any]]:
        """The existing documents with these keys, with these fields, as last written (real-time read)."""
        params = {"request_timeout": _timeout(timeout_s or self._read_s), "_source_includes": fields}
        body = {"ids": list(keys)}
        answers = self._call(lambda: list(self._client.mget(index=index, body=body, params=params)["docs"]))
        for reason in (str(each["error"].get("type")) for each in answers if "error" in each):
            if reason == "index_not_found_exception":
                raise Missing(f"OpenSearch has no such index or alias ({reason})")
            raise DependencyFailed(f"OpenSearch did not answer for all documents ({clip(reason, 300)})")
        return [each for each in answers if each.get("found")]

    def bulk(self, lines: str, *, alias: str, refresh: str) -> None:
        """Write through an alias. A conflict of versions is no failure: what is stored is newer.

        Raises DependencyFailed: also if some actions were rejected; the others were carried out.
        """
        params = {"refresh": refresh, "require_alias": "true"}
        results = self._call(
            lambda: [
                next(iter(item.values())) for item in self._client.bulk(body=lines, index=alias, params=params)["items"]
            ]
        )
        failed = [result for result in results if result["status"] >= 300 and result["status"] != _CONFLICT]
        # to delete what is not there is a 404 without an error
        failed = [result for result in failed if result["status"] != _GONE or "error" in result]
        if any(result["status"] == _GONE for result in failed):
            raise Missing(f"there is no index of the alias {alias}; it is created again")
        if failed:
            reasons = "; ".join(sorted({_reason(result) for result in failed}))
            rejected = f"{len(failed)} of {len(results)} entries"
            raise DependencyFailed(f"{alias} rejected {rejected}: {clip(reasons, 500)}")

    def delete_where(self, index: str, query: Mapping[str, Any]) -> None:
        """Delete the documents that match a query; those changed concurrently stay."""
        params = {"conflicts": "proceed", "refresh": "true"}
        self._call(lambda: self._client.delete_by_query(index=index, body={"query": query}, params=params))

    def create(self, index: str, body: Mapping[str, Any]) -> bool:
        """Create an index; returns False if one of this name exists."""
        try:
            self._call(lambda: self._client.indices.create(index=index, body=body))
        except DependencyFailed as error:
            if "resource_already_exists_exception" in str(error):
                return False
            raise
        return True

    def drop(self, index: str) -> None:
        self._call(lambda: self._client.indices.delete(index=index, params={"ignore_unavailable": "true"}))

    def refresh(self, index: str) -> None:
        """Make every write visible to searches."""
        self._call(lambda: self._client.indices.refresh(index=index))

    def merge(self, index: str) -> None:
        """Begin to force-merge an index to one segment: searches are faster until much of it is rewritten.

        A managed domain ends a request after minutes, so the merge goes on in the background.
        """
        params = {"request_timeout": _timeout(WRITE_S), "max_num_segments": 1, "wait_for_completion": "false"}
        self._call(lambda: self._client.indices.forcemerge(index=index, params=params))

    def behind(self, alias: str) -> list[str]:
        """The indices of an alias; none if there is no such alias."""
        try:
            return self._call(lambda: sorted(self._client.indices.get_alias(name=alias)))
        except Missing:
            return []

    def point(self, alias: str, index: str) -> None:
        """Switch an alias to this index alone, atomically."""
        actions = [{"remove": {"index": old, "alias": alias}} for old in self.behind(alias) if old != index]
        actions.append({"add": {"index": index, "alias": alias}})
        self._call(lambda: self._client.indices.update_aliases(body={"actions": actions}))

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except ConnectionTimeout as error:
            raise OutOfTime(f"OpenSearch did not answer in time ({clip(str(error.info), 200)})") from error
        except TransportError as error:
            raise _meaning(error) from error
        except (OpenSearchException, ImproperlyConfigured, *MALFORMED) as error:
            raise DependencyFailed(
                f"OpenSearch's response cannot be parsed ({type(error).__name__}); check proxies and the address"
            ) from error


def _timeout(seconds: float) -> Timeout:
    """Of a request: this long for reading, less for connecting."""
    return Timeout(connect=min(seconds, aws.CONNECT_S), read=seconds)


def _meaning(error: TransportError) -> DependencyFailed:
    if isinstance(error.info, UNSIGNED):
        return NotPermitted(f"OpenSearch denied access: {clip(str(error.info), 300)}; provide valid AWS credentials")
    status, said = error.status_code, clip(str(error.error), 300)
    if status == _GONE:
        return Missing(f"OpenSearch has no such index or alias ({said})")
    if status in (401, 403):
        return NotPermitted(
            f"OpenSearch refuses the caller ({status}: {said}): see the domain's access policy, the caller's own, "
            "and whether the domain has blocked writes because its disk is full"
        )
    if status == _FULL:
        return DependencyFailed(f"OpenSearch has more to do or to keep than it can ({status}: {said}); try again")
    return DependencyFailed(f"OpenSearch did not answer ({status}: {said})")


def _reason(result: Mapping[str, Any]) -> str:
    """The reason of a rejected action and its cause, without quoted values."""
    error = result.get("error") or {}
    reasons = [str(each["reason"]) for each in (error, error.get("caused_by") or {}) if each.get("reason")]
    said = "; ".join(reason.partition(" Preview of ")[0] for reason in reasons)
    return f"{result['status']} {error.get('type')}: {said}"
