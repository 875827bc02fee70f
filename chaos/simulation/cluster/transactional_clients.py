"""Transactional producers in a simulated cluster, and what consumes, transforms and produces: mostly `aiokafka`.

Two of one transactional id take turns: each that begins fences the other, which is a zombie until it gets the error.
What they do is the history that `chaos/checkers/transactions.py` judges.

`aiokafka` speaks the first version of the protocol, in which a request to end a transaction that was held up on its way
may end the next one (KAFKA-17754). So a client that may have asked twice begins anew, with an epoch of its own. Those
of the second version (`bumping_producer.py`) need not, and go on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import IllegalOperation
from aiokafka.producer.transaction_manager import TransactionState

from ....client.addresses import parse_addresses
from ....protocol.errors import CorruptData
from ....protocol.errors import KafkaError as ProtocolError
from ...checkers.transactions import Place, Poll, Send, Transaction
from ...workloads.bumping_producer import Address, BumpingProducer, FormerProducer
from ...workloads.first_version_producer import FirstVersionProducer, GaveUpError
from .clients import CLIENT_FAILURES, stop_client
from .consumer_members import Leadership
from .loop import SimulatedLoop
from .simulated_client import SimulatedClient
from .world import START_MS
from .zombies import Zombies

GROUP = "transformers"
_RETRY_S = 0.2
# Until a client is given up that waits for what will not come.
_PATIENCE_S = 20.0
STOP_S = 5.0
# What `aiokafka` waits at least before it asks again.
_BACKOFF_MS = 100
_SEND_COUNTS = (1, 2, 2, 3, 6)
_INPUTS_MAX = 5
_TRANSACTION_TIMEOUTS_MS = (2_000, 5_000, 10_000)
_PADDING_BYTES = (0, 0, 0, 0, 10, 1_000)
_ABORT_SHARE = 0.3
# For how long one that is not patient waits for a batch: about as long as a question between nodes takes, or longer.
_PATIENCES_S = (0.01, 0.05, 0.2)


class OverError(Exception):
    """A client is to begin anew."""


# An `aiokafka` producer that was refused, as it is fenced; until it is asked for the outcome of a record it says only
# that it is in no transaction.
_FAILED: Final = (TransactionState.ABORTABLE_ERROR, TransactionState.FATAL_ERROR)
# A client whose sender has failed asserts that it has not.
FAILURES = (*CLIENT_FAILURES, ProtocolError, CorruptData, TimeoutError, AssertionError, OverError)


@dataclass(slots=True)
class TransactionHistory:
    """What transactional clients did, and what readers had."""

    places: tuple[Place, ...]
    outputs: tuple[Place, ...]
    """Where the clients that consume `places` write; empty without such clients."""
    transactions: list[Transaction] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    consumed_ends: dict[Place, int] = field(default_factory=dict)
    """Up to where the group has consumed, as far as is known."""
    errors: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    """What not every client does, by what it is."""

    @property
    def commit_count(self) -> int:
        return sum(one.is_commit_answered for one in self.transactions)

    @property
    def read_count(self) -> int:
        return sum(len(poll.records) for poll in self.polls)


class TransactionalProducer(SimulatedClient):
    """One life after the other, until `is_stopping`."""

    def __init__(
        self, name: str, host: str, transactional_id: str, bootstrap: Sequence[str], history: TransactionHistory, *,
        bumping_share: float, leader: Callable[[Place], int | None], zombies: Zombies,
        loop: SimulatedLoop, random: Random, request_timeout_ms: int, trace: Callable[[str], None],
    ) -> None:  # fmt: skip
        """`bumping_share` of its lives are of the second version of the protocol; `leader` is for these."""
        super().__init__(name, host, loop=loop, random=random)
        self.commit_count = 0
        self.transactional_id = transactional_id
        self._bootstrap = list(bootstrap)
        self._history = history
        self._bumping_share = bumping_share
        self._leader = leader
        self._zombies = zombies
        self._former: FormerProducer | None = None
        self._request_timeout_ms = request_timeout_ms
        self._trace = trace
        self._number = 0

    async def _run(self) -> None:
        while not self.is_stopping:
            try:
                await self._live()
            except FAILURES as error:
                self._history.errors[type(error).__name__] += 1
                self._trace(f"transactional client failed: {self._name} {type(error).__name__}")
            # The other of the same transactional id has some time for itself.
            await asyncio.sleep(_RETRY_S + self._random.expovariate(1 / 2))
        self.is_done = True

    async def _live(self) -> None:
        producer = self._new_producer()
        try:
            await asyncio.wait_for(producer.start(), _PATIENCE_S)
            self._trace(f"transactional client begins: {self._name} as {type(producer).__name__}")
            await self._haunt()
            end_s = self._loop.time() + self._random.expovariate(1 / 6)
            await self._work(producer, end_s)
        finally:
            self._former = _identity(producer, self._history.places)
            # Some go without a word, with a transaction open: what they had to say is said by their connections' end.
            await stop_client(producer, timeout_s=STOP_S)

    async def _haunt(self) -> None:
        """A record of the life before: the one that has begun has fenced it."""
        if self._former is not None and self._zombies.is_due("zombie-produce"):
            await self._zombies.produce(self.transactional_id, self._former, self._random.choice(self._history.places))

    def _new_producer(self) -> Any:
        random = self._random
        transaction_timeout_ms = random.choice(_TRANSACTION_TIMEOUTS_MS)
        # One that consumes knows of no offsets but its own client's.
        if self._bumping_share and self._zombies.is_due("impatient-life"):
            return self._new_first_version_producer(patience_s=random.choice(_PATIENCES_S))
        if random.random() < self._bumping_share:
            return BumpingProducer(
                self._bootstrap, self.transactional_id, transaction_timeout_ms=transaction_timeout_ms, **self._shared()
            )
        return AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            client_id=self._name,
            transactional_id=self.transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            linger_ms=random.choice((0, 0, 5)),
            request_timeout_ms=self._request_timeout_ms,
            retry_backoff_ms=_BACKOFF_MS,
            metadata_max_age_ms=5_000,
        )

    def _new_first_version_producer(self, *, patience_s: float) -> FirstVersionProducer:
        timeout_ms = self._random.choice(_TRANSACTION_TIMEOUTS_MS)
        return FirstVersionProducer(
            self._bootstrap, self.transactional_id, transaction_timeout_ms=timeout_ms, patience_s=patience_s,
            **self._shared(),
        )  # fmt: skip

    def _shared(self) -> dict[str, Any]:
        return {
            "client_id": self._name,
            "request_timeout_ms": self._request_timeout_ms,
            "leader": self._leader_address,
            "now_ms": lambda: START_MS + int(self._loop.time() * 1000),
            "random": self._random,
        }

    def _leader_address(self, place: Place) -> Address | None:
        """The place of a node among the bootstrap addresses is its id, less one."""
        node_id = self._leader(place)
        if node_id is None or node_id < 1:
            return None
        (address,) = parse_addresses(self._bootstrap[node_id - 1])
        return address.host, address.port

    def _is_over(self, end_s: float) -> bool:
        return self.is_stopping or self._loop.time() >= end_s

    async def _work(self, producer: Any, end_s: float) -> None:
        while not self._is_over(end_s):
            transaction = await self._begin(producer)
            for _ in range(self._random.choice(_SEND_COUNTS)):
                place = self._random.choice(self._history.places)
                try:
                    await self._send(producer, transaction, [(place, b"")])
                except GaveUpError as error:
                    self._history.operations["batch given up"] += 1
                    await self._end(producer, transaction, is_commit=False)
                    raise OverError("it does not know where its batches end") from error
                if self._random.random() < 0.2:
                    await asyncio.sleep(self._random.expovariate(1 / 0.3))
            if self._random.random() < 0.05:
                raise OverError("vanishes")
            await self._end(producer, transaction, is_commit=self._random.random() >= _ABORT_SHARE)
            await asyncio.sleep(self._random.expovariate(1 / 0.1))

    async def _begin(self, producer: Any) -> Transaction:
        self._number += 1
        await producer.begin_transaction()
        transaction = Transaction(f"{self._name}.{self._number}")
        self._history.transactions.append(transaction)
        return transaction

    async def _send(self, producer: Any, transaction: Transaction, values: Sequence[tuple[Place, bytes]]) -> None:
        """They are stored when this returns."""
        sending = []
        for place, about in values:
            padding = b"." * self._random.choice(_PADDING_BYTES)
            value = b"%s %d %s" % (transaction.name.encode(), len(transaction.sends), about) + padding
            send = Send(place, value)
            transaction.sends.append(send)
            try:
                future = await asyncio.wait_for(
                    producer.send(place.topic, value, partition=place.partition), _PATIENCE_S
                )  # fmt: skip
            except IllegalOperation as error:
                if producer._txn_manager.state not in _FAILED:
                    raise
                raise OverError("an answer to what it sent before has ended its transaction") from error
            sending.append((send, future))
        for send, future in sending:
            send.offset = (await asyncio.wait_for(asyncio.shield(future), _PATIENCE_S)).offset

    async def _end(self, producer: Any, transaction: Transaction, *, is_commit: bool) -> None:
        begun_s = self._loop.time()
        if is_commit:
            transaction.commit_asked_s = begun_s
            await asyncio.wait_for(producer.commit_transaction(), _PATIENCE_S)
            transaction.is_commit_answered = True
            self.commit_count += 1
        else:
            await asyncio.wait_for(producer.abort_transaction(), _PATIENCE_S)
        self._trace(f"{'committed' if is_commit else 'aborted'} {transaction.name}")
        if (
            isinstance(producer, (AIOKafkaProducer, FirstVersionProducer))
            and self._loop.time() - begun_s >= _BACKOFF_MS / 1000
        ):
            raise OverError("it may have asked twice")


class Transformer(TransactionalProducer):
    """Consumes committed records of the first topic, in order, and writes one for each of them to the outputs."""

    def __init__(self, *arguments: Any, group_coordinator: Callable[[], Leadership | None], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._group_coordinator = group_coordinator

    async def _work(self, producer: Any, end_s: float) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            client_id=self._name,
            group_id=GROUP,
            isolation_level="read_committed",
            enable_auto_commit=False,
            # See `transactional_readers.py`.
            auto_offset_reset="none",
            request_timeout_ms=5_000,
            retry_backoff_ms=_BACKOFF_MS,
            metadata_max_age_ms=5_000,
        )
        try:
            await asyncio.wait_for(consumer.start(), _PATIENCE_S)
            places = {TopicPartition(*place): place for place in self._history.places}
            consumer.assign(list(places))
            positions = {}
            for partition, place in places.items():
                positions[place] = await committed_offset(consumer, partition, self._group_coordinator)
                consumer.seek(partition, positions[place])
                self._trace(f"transforms {self._name} {place.topic}-{place.partition} from {positions[place]}")
            self._note(positions)
            fetching = consumer._fetcher._fetch_task
            while not self._is_over(end_s):
                if fetching.done():
                    raise OverError("the client fetches no more")
                batches = await consumer.getmany(timeout_ms=300, max_records=_INPUTS_MAX)
                records = [(places[partition], record) for partition, some in batches.items() for record in some]
                if records and not await self._transform(producer, records, positions):
                    for partition, place in places.items():
                        consumer.seek(partition, positions[place])
        finally:
            await stop_client(consumer, timeout_s=STOP_S)

    async def _transform(
        self, producer: Any, records: Sequence[tuple[Place, Any]], positions: dict[Place, int]
    ) -> bool:
        """In a transaction. Returns whether it is committed, and then `positions` are behind it."""
        transaction = await self._begin(producer)
        outputs = self._history.outputs
        values = [
            (self._random.choice(outputs), b"%d %d" % (place.partition, record.offset)) for place, record in records
        ]
        await self._send(producer, transaction, values)
        ends: dict[Place, int] = {}
        for place, record in records:
            ends[place] = record.offset + 1
        transaction.consumed = {place: (positions[place], end) for place, end in ends.items()}
        offsets = {TopicPartition(*place): end for place, end in ends.items()}
        await asyncio.wait_for(producer.send_offsets_to_transaction(offsets, GROUP), _PATIENCE_S)
        is_commit = self._random.random() >= _ABORT_SHARE
        await self._end(producer, transaction, is_commit=is_commit)
        if is_commit:
            positions.update(ends)
            self._note(positions)
        return is_commit

    def _note(self, positions: dict[Place, int]) -> None:
        known = self._history.consumed_ends
        for place, position in positions.items():
            known[place] = max(position, known.get(place, 0))


def _identity(producer: Any, places: Sequence[Place]) -> FormerProducer | None:
    """As whom a producer wrote; None when it had no producer id yet."""
    if isinstance(producer, BumpingProducer):
        former = producer.former
    else:
        manager = producer._txn_manager
        sequences = {place: manager.sequence_number(TopicPartition(*place)) for place in places}
        former = FormerProducer(manager.producer_id, manager.producer_epoch, sequences)
    return former if former.producer_id >= 0 else None


async def committed_offset(
    consumer: Any, partition: TopicPartition, group_coordinator: Callable[[], Leadership | None]
) -> int:
    """Its group's, from the present coordinator: a former one may not know yet that it was replaced."""
    while True:
        asked = group_coordinator()
        offset = await asyncio.wait_for(consumer.committed(partition), _PATIENCE_S)
        if asked is not None and asked == group_coordinator() and consumer._coordinator.coordinator_id == asked.node_id:
            return offset or 0
        # It finds the coordinator anew.
        consumer._coordinator.coordinator_dead()
        await asyncio.sleep(_RETRY_S)
