"""`cluster.faults`: what happens to requests of the whole cluster, given to every node, whichever leads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import RLock
from typing import Final, TypeVar

from ...client import clock
from ...local.errors import ClusterError
from ..faults.node_faults import NodeFaults
from ..faults.request_faults import ANY_API, Hit, Point, RequestFault, Sender, issue_tickets, read_hits
from .held_fault import HeldFault

REACHED_TIMEOUT_S: Final = 30.0

_H = TypeVar("_H", bound="HeldRequests")


class HeldRequests(HeldFault):
    """A fault of requests that holds; `hits` are those that it has hit so far, in their order."""

    def __init__(self, what: str, heal: Callable[[], None], folder: Path) -> None:
        super().__init__(what, heal)
        self._folder = folder

    @property
    def hits(self) -> list[Hit]:
        return read_hits(self._folder)

    def wait_hits(self, count: int = 1, *, timeout_s: float = REACHED_TIMEOUT_S) -> None:
        """Waits until so many requests have been hit. Raises ClusterError."""
        if not clock.wait_until(lambda: len(self.hits) >= count, timeout_s=timeout_s):
            raise ClusterError(
                f"{self.what}: {len(self.hits)} requests were hit within {timeout_s:g} s, expected {count}"
            )


class Barrier(HeldRequests):
    """Requests that come to its point wait there until it is released."""

    def wait_reached(self, count: int = 1, *, timeout_s: float = REACHED_TIMEOUT_S) -> None:
        """Waits until so many requests are at the point, or have been. Raises ClusterError."""
        self.wait_hits(count, timeout_s=timeout_s)

    def release(self) -> None:
        """Those that wait go on, and what comes later passes."""
        self.heal()


class RequestOrders:
    """All faults of requests that hold in a cluster. `topic_id` finds the id of a topic."""

    def __init__(
        self,
        nodes: Callable[[], Sequence[NodeFaults]],
        folder: Path,
        *,
        topic_id: Callable[[str], str | None],
        note: Callable[[str], None],
        turn: RLock,
    ) -> None:
        self._nodes = nodes
        self._folder = folder
        self._topic_id = topic_id
        self._note = note
        self._turn = turn
        self._numbers = itertools.count(1)
        self._faults: dict[int, tuple[RequestFault, HeldRequests]] = {}

    def next(
        self,
        api: str,
        n: int = 1,
        *,
        error: str,
        topic: str | None = None,
        client_id: str | None = None,
        at: Point = "before-handling",
        sender: Sender = "client",
    ) -> HeldRequests:
        """The next `n` requests of `api`, to whichever node they go, are answered with `error`.

        `at="before-ack"`: they are carried out all the same. `error="DISCONNECT"` closes the connection instead of an
        answer. Names are Kafka's: `Produce`, `NOT_LEADER_OR_FOLLOWER`. A request that names `topic` among others is
        hit as a whole. Raises ClusterError for a name that Kafka does not have, and for an unknown topic.
        """
        what = f"the next {n} {api} → {error} {at}"
        return self._give(
            HeldRequests, what, count=n, api=api, error=error, topic=topic, client_id=client_id, at=at, sender=sender
        )

    def always(
        self,
        api: str = ANY_API,
        *,
        error: str,
        topic: str | None = None,
        client_id: str | None = None,
        at: Point = "before-handling",
        sender: Sender = "client",
    ) -> HeldRequests:
        """As `next`, until it is healed."""
        what = f"every {api} → {error} {at}"
        return self._give(
            HeldRequests, what, api=api, error=error, topic=topic, client_id=client_id, at=at, sender=sender
        )

    def delay(
        self,
        api: str = ANY_API,
        *,
        delay_ms: int,
        n: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
        at: Point = "before-handling",
        sender: Sender = "client",
    ) -> HeldRequests:
        """Requests, `n` of them or all, wait so long: before they are handled, or before their answer leaves."""
        what = f"{'every' if n is None else f'the next {n}'} {api} delayed by {delay_ms} ms {at}"
        return self._give(
            HeldRequests,
            what,
            count=n,
            api=api,
            delay_ms=delay_ms,
            topic=topic,
            client_id=client_id,
            at=at,
            sender=sender,
        )

    def barrier(
        self,
        api: str,
        *,
        at: Point = "before-ack",
        n: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
        sender: Sender = "client",
    ) -> Barrier:
        """Requests, `n` of them or all, wait at the point until the barrier is released."""
        what = f"barrier of {api} {at}"
        return self._give(
            Barrier, what, count=n, api=api, holds=True, topic=topic, client_id=client_id, at=at, sender=sender
        )

    def heal(self) -> None:
        """Nothing more happens to requests, and those that wait go on."""
        with self._turn:
            for _, held in list(self._faults.values()):
                held.heal()

    def _give(
        self,
        kind: type[_H],
        what: str,
        *,
        api: str,
        topic: str | None,
        client_id: str | None,
        at: Point,
        sender: Sender,
        count: int | None = None,
        error: str | None = None,
        delay_ms: int = 0,
        holds: bool = False,
    ) -> _H:
        with self._turn:
            topic_id = None
            if topic is not None:
                what = f"{what} in {topic}"
                topic_id = self._topic_id(topic)
                if topic_id is None:
                    raise ClusterError(f"there is no topic {topic} whose requests could be hit")
            number = next(self._numbers)
            folder = self._folder / f"requests-{number}"
            fault = RequestFault(
                number=number,
                folder=str(folder),
                api=api,
                sender=sender,
                client_id=client_id,
                topic=topic,
                topic_id=topic_id,
                at=at,
                error=error,
                delay_ms=delay_ms,
                holds=holds,
                is_counted=count is not None,
            )
            issue_tickets(folder, count)
            held = kind(what, lambda: self._take_back(number), folder)
            self._faults[number] = fault, held
            self._order()
            self._note(f"begins: {what}")
            return held

    def _take_back(self, number: int) -> None:
        with self._turn:
            _, held = self._faults.pop(number)
            self._order()
            self._note(f"ends: {held.what} (hit {len(held.hits)})")

    def _order(self) -> None:
        faults = [fault for fault, _ in self._faults.values()]
        for node in self._nodes():
            node.order_requests(*faults)
