"""Has the markers of decided transactions written by the leaders of their partitions, for as long as it takes.

A marker is queued for the leader of its partition; the queue of a broker goes out as one WriteTxnMarkers, one at a
time. A marker that a broker did not write is queued again a moment later, for the leader of that moment; a marker for a
partition without a leader waits for the metadata to change. Deleted partitions need no marker. An order is open until
all of its partitions are reported, or it is fenced or cancelled; of an order that is not open nothing more is sent, and
nothing reported. Kafka: `TransactionMarkerChannelManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, Protocol

from msgspec import Struct

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import Request, Response
from ...quorum.metadata.image import MetadataImage
from ..transactions.markers import MarkerOrder, Marks
from ..transactions.transaction import TransactionPartition

logger = logging.getLogger(__name__)

RETRY_MS: Final = 20
"""Until what was not written is asked for again: a new leader is known within that, mostly."""
RETRY_MS_MAX: Final = 1_000
"""For a broker that stays out of reach; a change of the metadata ends the wait."""
PARTITIONS_MAX: Final = 5_000
"""In one request: below a megabyte."""
# The producer could not have written there, so there is nothing to end.
_NOTHING_TO_END: Final = frozenset({ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})


class Peers(Protocol):
    async def request(self, broker_id: int, message: Request) -> Response:
        """Raises KafkaError."""


class MarkerReports(Protocol):
    """The coordinator of an open order."""

    def on_written(self, order: MarkerOrder, partitions: Collection[TransactionPartition]) -> None:
        """Partitions that need no more marker, each once."""

    def on_fenced(self, order: MarkerOrder) -> None:
        """A partition knows a later coordinator epoch. It is the last report of the order."""


class _OpenOrder(Struct):
    reports: MarkerReports
    unmarked: set[TransactionPartition]


class MarkerSender:
    """Applies the effects `WriteMarkers` and `CancelMarkers`."""

    def __init__(self, peers: Peers, image: Callable[[], MetadataImage], loop: asyncio.AbstractEventLoop) -> None:
        """`image` is the newest one."""
        self._peers = peers
        self._image = image
        self._loop = loop
        self._open: dict[MarkerOrder, _OpenOrder] = {}
        self._queues: dict[int, Marks] = {}
        # Of brokers with a request under way, or with some to send.
        self._senders: dict[int, asyncio.Task[None]] = {}
        # To be queued again by a timer, or when the partition has a leader.
        self._retries: dict[asyncio.TimerHandle, Marks] = {}
        self._unled: Marks = {}
        # How often in a row a broker was out of reach.
        self._failure_counts: dict[int, int] = {}
        self._is_closed = False

    @property
    def unled_count(self) -> int:
        """Markers that wait until their partitions have leaders."""
        return sum(map(len, self._unled.values()))

    def write(self, order: MarkerOrder, reports: MarkerReports) -> None:
        """Has markers written into all of its partitions, however long that takes, until it is cancelled."""
        self._open[order] = _OpenOrder(reports, set(order.transaction.partitions))
        self._queue(order, order.transaction.partitions)

    def cancel(self, order: MarkerOrder) -> None:
        """No error for an order that has ended."""
        self._open.pop(order, None)

    def on_metadata(self) -> None:
        """It has changed: there may be other leaders."""
        brokers = self._image().brokers
        for broker_id, sender in self._senders.items():
            broker = brokers.get(broker_id)
            if broker is None or broker.is_fenced:
                # Others lead what it led; it may be silent for long.
                sender.cancel()
        if self._unled or self._retries:
            self._failure_counts.clear()
            waiting = [self._unled, *self._retries.values()]
            self._cancel_retries()
            self._unled = {}
            for marks in waiting:
                self._queue_all(marks)

    async def close(self) -> None:
        """The node stops."""
        self._is_closed = True
        self._cancel_retries()
        tasks = list(self._senders.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _queue_all(self, marks: Marks) -> None:
        for order, partitions in marks.items():
            self._queue(order, partitions)

    def _queue(self, order: MarkerOrder, partitions: Collection[TransactionPartition]) -> None:
        if order not in self._open or self._is_closed:
            return
        topics = self._image().topics
        gone: list[TransactionPartition] = []
        for one in partitions:
            registration = topics.partition(one.topic, one.partition)
            if registration is None:
                gone.append(one)
            elif registration.leader < 0:
                self._unled.setdefault(order, set()).add(one)
            else:
                self._queues.setdefault(registration.leader, {}).setdefault(order, set()).add(one)
                if registration.leader not in self._senders:
                    sender = self._loop.create_task(self._send(registration.leader))
                    self._senders[registration.leader] = sender
                    sender.add_done_callback(partial(self._on_sent, registration.leader))
        if gone:
            logger.info(
                "Partitions deleted, skip sending transaction markers: transactional_id=%s %s",
                order.transaction.id,
                gone,
            )
            self._report_written(order, gone)

    async def _send(self, broker_id: int) -> None:
        """Until nothing is queued for the broker."""
        # A node that ends no transaction starts without loading it.
        from .rules.marker_request import errors_of, marker_request

        try:
            while broker_id in self._queues:
                marks = self._take(broker_id)
                if not marks:
                    continue
                try:
                    errors = errors_of(await self._peers.request(broker_id, marker_request(marks)))
                except KafkaError as error:
                    self._on_unreached(broker_id, marks, error)
                except BaseException:
                    self._try_again(marks, RETRY_MS)
                    raise
                else:
                    self._failure_counts.pop(broker_id, None)
                    self._on_answer(broker_id, marks, errors)
        except Exception:
            logger.exception("Task failed: task=transaction markers broker=%d", broker_id)

    def _on_sent(self, broker_id: int, _sender: asyncio.Task[None]) -> None:
        del self._senders[broker_id]
        # It came when the task was about to end, or for a broker that is gone: others may lead it.
        self._queue_all(self._queues.pop(broker_id, {}))

    def _take(self, broker_id: int) -> Marks:
        """Some of what is queued for the broker, of open orders."""
        queue = self._queues[broker_id]
        taken: Marks = {}
        count = 0
        while queue and count < PARTITIONS_MAX:
            order = next(iter(queue))
            partitions = queue.pop(order)
            if order in self._open:
                taken[order] = partitions
                count += len(partitions)
        if not queue:
            del self._queues[broker_id]
        return taken

    def _on_unreached(self, broker_id: int, marks: Marks, error: KafkaError) -> None:
        failure_count = self._failure_counts[broker_id] = self._failure_counts.get(broker_id, 0) + 1
        if failure_count == 1:
            logger.info("Failed to send transaction markers, retrying: broker=%d reason=%s", broker_id, error)
        self._try_again(marks, min(RETRY_MS << min(failure_count, 10), RETRY_MS_MAX))

    def _on_answer(self, broker_id: int, marks: Marks, errors: Mapping[tuple[int, str, int], ErrorCode]) -> None:
        retries: Marks = {}
        for order, partitions in marks.items():
            written: list[TransactionPartition] = []
            is_fenced = False
            for one in partitions:
                error = errors.get((order.transaction.producer_id, one.topic, one.partition))
                if error is ErrorCode.NONE or error in _NOTHING_TO_END:
                    written.append(one)
                elif error is ErrorCode.INVALID_PRODUCER_EPOCH:
                    # The partition knows a later epoch, which begins behind the end of this transaction.
                    logger.info(
                        "Transaction marker rejected, producer epoch is newer: transactional_id=%s %s",
                        order.transaction.id,
                        one,
                    )
                    written.append(one)
                elif error is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                    is_fenced = True
                else:
                    logger.debug(
                        "Transaction marker failed, retrying: broker=%d partition=%s error=%s", broker_id, one, error
                    )
                    retries.setdefault(order, set()).add(one)
            if order not in self._open:
                continue
            if is_fenced:
                self._open.pop(order).reports.on_fenced(order)
            elif written:
                self._report_written(order, written)
        self._try_again(retries, RETRY_MS)

    def _report_written(self, order: MarkerOrder, partitions: Collection[TransactionPartition]) -> None:
        """Of an open order."""
        open_order = self._open[order]
        open_order.unmarked.difference_update(partitions)
        if not open_order.unmarked:
            del self._open[order]
        open_order.reports.on_written(order, partitions)

    def _try_again(self, marks: Marks, delay_ms: int) -> None:
        wanted = {order: partitions for order, partitions in marks.items() if order in self._open}
        if not wanted or self._is_closed:
            return

        def retry() -> None:
            del self._retries[handle]
            self._queue_all(wanted)

        handle = self._loop.call_later(delay_ms / 1000, retry)
        self._retries[handle] = wanted

    def _cancel_retries(self) -> None:
        for handle in self._retries:
            handle.cancel()
        self._retries = {}
