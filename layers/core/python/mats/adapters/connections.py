"""Pooled HTTP connections that are not used after a long pause.

A frozen execution environment of Lambda does not hear that its peer, or a NAT gateway or VPC endpoint in between, has
given up an idle connection: a request over it would wait for its timeout. So a connection that was idle for longer than
such devices allow is replaced by a new one.
"""

import socket
import time
from collections.abc import Callable
from functools import partial
from queue import LifoQueue
from typing import Any, NamedTuple

from botocore.awsrequest import AWSHTTPConnectionPool, AWSHTTPSConnectionPool
from urllib3 import HTTPConnectionPool

IDLE_S = 30.0  # Load balancers close idle connections after 60 s, NAT gateways and VPC endpoints after 350 s
_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]
"""Probes for dead peers while the process runs; without them the system waits for two hours."""


class Moment(NamedTuple):
    """A time by both clocks: in a frozen process the monotonic one may stand still, and the wall clock may be set."""

    monotonic_s: float
    wall_s: float

    @classmethod
    def now(cls) -> "Moment":
        return cls(time.monotonic(), time.time())

    def seconds_to(self, later: "Moment") -> float:
        """The longer of the two durations."""
        return max(later.monotonic_s - self.monotonic_s, later.wall_s - self.wall_s)


class FreshQueue(LifoQueue[Any]):
    """The queue of a pool of urllib3. Closes what was idle for too long; urllib3 connects it again at its next use."""

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if item is not None:
            item.idle_since = Moment.now()
        super().put(item, block, timeout)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        item = super().get(block, timeout)
        if item is not None and item.idle_since.seconds_to(Moment.now()) > IDLE_S:
            item.close()
        return item


def keep_fresh(pool: HTTPConnectionPool) -> None:
    """Give a pool that has no connections yet such a queue, and its connections TCP keepalive."""
    options = pool.conn_kw.get("socket_options") or pool.ConnectionCls.default_socket_options
    pool.conn_kw["socket_options"] = [*options, *_KEEPALIVE]
    # the same object, because the pool's finalizer closes the connections in it
    pool.pool.__class__ = FreshQueue


def _fresh_pool(kind: Callable[..., HTTPConnectionPool], *args: Any, **options: Any) -> HTTPConnectionPool:
    pool = kind(*args, **options)
    keep_fresh(pool)
    return pool


_FRESH_POOLS = {
    "http": partial(_fresh_pool, AWSHTTPConnectionPool),
    "https": partial(_fresh_pool, AWSHTTPSConnectionPool),
}


def keep_client_fresh(client: Any) -> None:
    """The same for the pools of a boto3 client that has made no call yet."""
    # botocore has no public way to choose the classes of its pools
    client._endpoint.http_session._manager.pool_classes_by_scheme = _FRESH_POOLS
