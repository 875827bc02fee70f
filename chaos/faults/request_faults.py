"""What a node is ordered to do to requests: refuse them, carry them out and lose the answer, delay or hold them.

    {"number": 1, "api": "Produce", "at": "before-ack", "error": "REQUEST_TIMED_OUT", "folder": "…/faults-1", …}

`before-handling` is the instant in which a request has arrived whole and nothing has been done for it;
`before-ack` the one in which its answer is ready and has not left: records are appended, offsets committed, a
transaction ended. An error there is what a lost answer is to a client: it repeats what has taken place already.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from ...local.errors import ClusterError
from ...protocol.apis import APIS
from ...protocol.errors import ErrorCode

Point: TypeAlias = Literal["before-handling", "before-ack"]
Sender: TypeAlias = Literal["client", "node"]
POINTS: Final[tuple[Point, ...]] = get_args(Point)
SENDERS: Final[tuple[Sender, ...]] = get_args(Sender)
DISCONNECT: Final = "DISCONNECT"
"""In place of the name of an error: the connection is closed, and the client gets no answer."""
ANY_API: Final = "*"
HARNESS: Final = "penstock-chaos"
"""The client id of what looks at a cluster while it is broken: no fault of requests hits it."""
_APIS: Final = frozenset(api.name for api in APIS.values())
_ERRORS: Final = frozenset(code.name for code in ErrorCode if code is not ErrorCode.NONE)
_TICKET: Final = "ticket-"


class RequestFault(Struct, frozen=True, kw_only=True):
    """Requests of `api` that name `topic` (by name, or by the id of it) are delayed, held or answered with `error`.

    A request that names several topics is hit as a whole. An incremental Fetch (KIP-227) names only the partitions
    that changed: without a topic the fault hits all of them.
    """

    number: int
    """Which fault of its cluster."""
    folder: str
    """Where nodes take tickets and write what they hit: one for all nodes, so that `n` is the cluster's."""
    api: str = ANY_API
    sender: Sender = "client"
    client_id: str | None = None
    topic: str | None = None
    topic_id: str | None = None
    """32 hexadecimal digits; from Produce 13 and Fetch 13 on a request has only that (KIP-516)."""
    at: Point = "before-handling"
    error: str | None = None
    """A name of Kafka's table, or `DISCONNECT`."""
    delay_ms: int = 0
    holds: bool = False
    """Until this fault is no longer ordered."""
    is_counted: bool = False
    """Hits as many as there are tickets in the folder; else all."""

    def __post_init__(self) -> None:
        if self.api != ANY_API and self.api not in _APIS:
            raise ClusterError(f"{self.api!r} is no API of Kafka: expected a name as Produce, Fetch or OffsetCommit")
        if self.at not in POINTS:
            raise ClusterError(f"{self.at!r} is no point of a request: expected {' or '.join(POINTS)}")
        if self.sender not in SENDERS:
            raise ClusterError(f"{self.sender!r} sends no requests: expected {' or '.join(SENDERS)}")
        if self.error is not None and self.error != DISCONNECT and self.error not in _ERRORS:
            raise ClusterError(
                f"{self.error!r} is no error of Kafka: expected a name as NOT_LEADER_OR_FOLLOWER, or {DISCONNECT}"
            )
        if self.delay_ms < 0:
            raise ClusterError(f"a delay is 0 ms or more, not {self.delay_ms}")

    @property
    def code(self) -> ErrorCode | None:
        """None where there is no error, or the connection is closed instead."""
        return None if self.error is None or self.error == DISCONNECT else ErrorCode[self.error]

    def is_about(self, api: str, sender: Sender, client_id: str | None) -> bool:
        """Whether a request may be hit, as far as its header says."""
        return (
            self.api in (ANY_API, api)
            and sender == self.sender
            and client_id != HARNESS
            and (self.client_id is None or self.client_id == client_id)
        )


class Hit(Struct, frozen=True, kw_only=True):
    """One request that was hit, as the node wrote it. `time_ns` is of the clock that all processes share."""

    time_ns: int
    node: str
    api: str
    client_id: str | None
    correlation_id: int


def issue_tickets(folder: Path, count: int | None) -> None:
    """Make the folder of a fault that hits `count` requests; None means all. Raises ClusterError."""
    if count is not None and count < 1:
        raise ClusterError(f"a fault hits at least one request, not {count}")
    folder.mkdir(parents=True)
    for number in range(count or 0):
        (folder / f"{_TICKET}{number}").touch()


def take_ticket(folder: str) -> bool:
    """Whether one was left. Two nodes never get the same: a file can be removed once."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return False
    for name in names:
        if name.startswith(_TICKET):
            try:
                os.unlink(f"{folder}/{name}")
            except FileNotFoundError:
                continue
            return True
    return False


def write_hit(folder: str, hit: Hit) -> None:
    values = [hit.time_ns, hit.node, hit.api, hit.client_id, hit.correlation_id]
    descriptor = os.open(f"{folder}/hits", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        # One write for the line: several nodes append to the file.
        os.write(descriptor, json.dumps(values).encode() + b"\n")
    finally:
        os.close(descriptor)


def read_hits(folder: Path) -> list[Hit]:
    """In the order in which they were written."""
    try:
        lines = (folder / "hits").read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    return list(_hits(line for line in lines if line.endswith(b"\n")))


def _hits(lines: Iterable[bytes]) -> Iterator[Hit]:
    for line in lines:
        time_ns, node, api, client_id, correlation_id = json.loads(line)
        yield Hit(time_ns=time_ns, node=node, api=api, client_id=client_id, correlation_id=correlation_id)
