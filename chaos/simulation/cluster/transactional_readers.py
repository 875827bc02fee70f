"""Readers of what transactions wrote, while they go on: of committed records, and of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from ...checkers.records import Stored
from ...checkers.transactions import Place, Poll
from .clients import CLIENT_FAILURES, stop_client
from .loop import SimulatedLoop
from .simulated_client import RevivingClient
from .transactional_clients import STOP_S, TransactionHistory


class TransactionReader(RevivingClient):
    """From the start of every partition, and after a while or a failure anew."""

    failures = CLIENT_FAILURES

    def __init__(
        self, name: str, host: str, bootstrap: Sequence[str], history: TransactionHistory, *,
        is_read_committed: bool, loop: SimulatedLoop, random: Random, trace: Callable[[str], None],
    ) -> None:  # fmt: skip
        super().__init__(name, host, history.errors, loop=loop, random=random)
        self._bootstrap = list(bootstrap)
        self._history = history
        self._is_read_committed = is_read_committed
        self._trace = trace

    async def _live(self, name: str) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            client_id=name,
            group_id=None,
            isolation_level="read_committed" if self._is_read_committed else "read_uncommitted",
            enable_auto_commit=False,
            # A former leader that has lost its log may get the fetch and answer OFFSET_OUT_OF_RANGE: the client names
            # no leader epoch (KIP-320). It is not to begin again by itself.
            auto_offset_reset="none",
            request_timeout_ms=5_000,
            retry_backoff_ms=100,
            metadata_max_age_ms=5_000,
            fetch_max_wait_ms=self._random.choice((100, 500)),
            max_partition_fetch_bytes=self._random.choice((1_000, 1_048_576)),
        )
        try:
            await consumer.start()
            end_s = self._loop.time() + self._random.expovariate(1 / 8)
            places = {TopicPartition(*place): place for place in (*self._history.places, *self._history.outputs)}
            consumer.assign(list(places))
            for partition in places:
                consumer.seek(partition, 0)
            # An error that the client does not handle ends its fetching, silently: it would wait without end.
            fetching = consumer._fetcher._fetch_task
            while not self.is_stopping and self._loop.time() < end_s:
                if fetching.done():
                    raise KafkaError("the client fetches no more")
                for partition, records in (await consumer.getmany(timeout_ms=300)).items():
                    self._note(name, places[partition], [Stored(one.offset, one.value) for one in records])
        finally:
            await stop_client(consumer, timeout_s=STOP_S)

    def _note(self, name: str, place: Place, records: Sequence[Stored]) -> None:
        if records:
            self._trace(f"read by {name} {place.topic}-{place.partition} {records[0].offset} {records[-1].offset}")
            self._history.polls.append(
                Poll(
                    reader=name, is_read_committed=self._is_read_committed, place=place,
                    records=tuple(records), read_s=self._loop.time(),
                )
            )  # fmt: skip
