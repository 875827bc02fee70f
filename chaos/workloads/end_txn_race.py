"""The race of EndTxn, as a program: a request to commit that was held up on its way arrives in the next transaction.

In the first version of the protocol both transactions have the same producer epoch, so the late request commits what
the next one has written by then, and the rest of that one is aborted: it is torn (KAFKA-17754). In the second version
every transaction has an epoch of its own, and the late request is refused (KIP-890).

Each round: a transaction is committed, and a second copy of its EndTxn stays in hand, as a connection that was given
up holds one. The next transaction sends to one key; the copy arrives; a reader looks; it sends to the other key and
aborts.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any, Final

import click
from aiokafka import AIOKafkaConsumer, TopicPartition
from kio.schema.end_txn.v4.request import EndTxnRequest as FirstEndTxnRequest
from kio.schema.end_txn.v5.request import EndTxnRequest as SecondEndTxnRequest
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.static.primitive import i16

from ...client import clock
from ...client.addresses import parse_addresses
from ...client.connection import connect
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import Request
from ..checkers.transactions import Place
from ..histories.client_history import ClientHistory
from .bumping_producer import Address, BumpingProducer
from .first_version_producer import FirstVersionProducer

_TRANSACTIONAL_ID: Final = "end-txn-race"
_REQUEST_TIMEOUT_MS: Final = 5_000
_TRANSACTION_TIMEOUT_MS: Final = 60_000
# How long a reader waits for what a late commit that was accepted has made visible, and for what is not to come.
_VISIBLE_S: Final = 10.0
_POLL_MS: Final = 200


class Race:
    """One producer of the protocol's `version` (1 or 2) and one reader, on two keys of `topic`."""

    def __init__(
        self, bootstrap: str, topic: str, *, version: int, writer: ClientHistory, reader: ClientHistory
    ) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._version = version
        self._writer = writer
        self._reader = reader
        self._leaders: dict[Place, Address] = {}
        self._consumer: Any = None
        self._next_value = 0
        self.accepted_count = 0
        """Of requests that came too late."""

    async def run(self, rounds: int) -> None:
        """Raises ConnectionError, TimeoutError and KafkaError where a cluster that nothing breaks is not well."""
        await self._find_leaders()
        keys = [TopicPartition(self._topic, number) for number in (0, 1)]
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap, isolation_level="read_committed", enable_auto_commit=False
        )
        await self._consumer.start()
        producer = self._new_producer()
        try:
            self._reader.invoke("assign", [_name(key) for key in keys])
            self._consumer.assign(keys)
            await self._consumer.seek_to_beginning(*keys)
            self._reader.ok([_name(key) for key in keys])
            await producer.start()
            for _ in range(rounds):
                await self._round(producer)
            await self._read(lambda _: False, seconds=1.0)
        finally:
            await producer.stop()
            await self._consumer.stop()

    async def _round(self, producer: BumpingProducer) -> None:
        send = self._draw_send(0)
        self._writer.invoke("txn", [send])
        await producer.begin_transaction()
        done = [await self._send(producer, send)]
        late = self._end_txn(producer)
        await producer.commit_transaction()
        self._writer.ok(done)

        sends = [self._draw_send(0), self._draw_send(1)]
        self._writer.invoke("txn", sends)
        await producer.begin_transaction()
        await self._send(producer, sends[0])
        if await self._arrive(late):
            self.accepted_count += 1
            await self._read(lambda value: value == sends[0][2], seconds=_VISIBLE_S)
        else:
            await self._read(lambda _: False, seconds=_POLL_MS / 1000)
        try:
            await self._send(producer, sends[1])
            await producer.abort_transaction()
        except KafkaError as error:
            # Whatever the abort comes to, nothing has asked for this transaction to be committed.
            self._writer.fail(str(error))
        else:
            self._writer.fail("aborted")

    def _draw_send(self, partition: int) -> list[Any]:
        self._next_value += 1
        return ["send", f"{self._topic}-{partition}", self._next_value]

    async def _send(self, producer: BumpingProducer, send: list[Any]) -> list[Any]:
        _, key, value = send
        delivered = await producer.send(self._topic, str(value).encode(), partition=int(key.rpartition("-")[2]))
        return ["send", key, [delivered.result().offset, value]]

    def _end_txn(self, producer: BumpingProducer) -> Request:
        former = producer.former
        kind = FirstEndTxnRequest if self._version == 1 else SecondEndTxnRequest
        return kind(
            transactional_id=TransactionalId(_TRANSACTIONAL_ID),
            producer_id=ProducerId(former.producer_id),
            producer_epoch=i16(former.producer_epoch),
            committed=True,
        )

    async def _arrive(self, late: Request) -> bool:
        """Whether the coordinator accepts it; asked once it is not busy with the transaction before."""
        deadline_s = clock.monotonic_s() + _VISIBLE_S
        coordinator = parse_addresses(self._bootstrap)
        while True:
            for address in coordinator:
                async with await connect(address.host, address.port, timeout_ms=_REQUEST_TIMEOUT_MS) as connection:
                    answer: Any = await connection.call(late)
                code = ErrorCode(int(answer.error_code))
                if code is ErrorCode.NONE:
                    return True
                if code not in (ErrorCode.NOT_COORDINATOR, ErrorCode.CONCURRENT_TRANSACTIONS):
                    return False
            if clock.monotonic_s() > deadline_s:
                raise TimeoutError(f"the late EndTxn had no answer within {_VISIBLE_S:g} s")
            await asyncio.sleep(0.02)

    async def _read(self, is_wanted: Any, *, seconds: float) -> None:
        """Polls until a value that is wanted has come or the time is over."""
        deadline_s = clock.monotonic_s() + seconds
        while True:
            self._reader.invoke("poll", [["poll"]])
            polled = await self._consumer.getmany(timeout_ms=_POLL_MS)
            read = {
                _name(place): [[record.offset, int(record.value)] for record in records]
                for place, records in polled.items()
            }
            self._reader.ok([["poll", read]])
            if any(is_wanted(value) for pairs in read.values() for _, value in pairs):
                return
            if clock.monotonic_s() >= deadline_s:
                return

    def _new_producer(self) -> BumpingProducer:
        shared: dict[str, Any] = {
            "client_id": _TRANSACTIONAL_ID,
            "request_timeout_ms": _REQUEST_TIMEOUT_MS,
            "transaction_timeout_ms": _TRANSACTION_TIMEOUT_MS,
            "leader": self._leaders.get,
            "now_ms": clock.now_ms,
            "random": Random(0),
        }
        addresses = self._bootstrap.split(",")
        if self._version == 1:
            return FirstVersionProducer(addresses, _TRANSACTIONAL_ID, patience_s=_VISIBLE_S, **shared)
        return BumpingProducer(addresses, _TRANSACTIONAL_ID, **shared)

    async def _find_leaders(self) -> None:
        (address, *_) = parse_addresses(self._bootstrap)
        question = MetadataRequest(
            topics=(MetadataRequestTopic(topic_id=None, name=TopicName(self._topic)),),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        async with await connect(address.host, address.port, timeout_ms=_REQUEST_TIMEOUT_MS) as connection:
            answer: Any = await connection.call(question)
        brokers = {int(broker.node_id): (str(broker.host), int(broker.port)) for broker in answer.brokers}
        for partition in answer.topics[0].partitions:
            leader = brokers.get(int(partition.leader_id))
            if leader is not None:
                self._leaders[Place(self._topic, int(partition.partition_index))] = leader


def _name(key: TopicPartition) -> str:
    return f"{key.topic}-{key.partition}"


@click.command()
@click.option("--bootstrap", required=True)
@click.option("--topic", required=True, help="Of two partitions.")
@click.option("--protocol", "version", type=click.Choice(["1", "2"]), default="2", show_default=True)
@click.option("--history", "folder", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--start-ns", type=int, default=0)
def main(bootstrap: str, topic: str, version: str, folder: Path, rounds: int, start_ns: int) -> None:
    """Rounds of the race; what the writer and the reader did lies in two files in the folder afterwards."""
    with (
        ClientHistory(folder / "writer.jsonl", process=0, stride=2, start_ns=start_ns) as writer,
        ClientHistory(folder / "reader.jsonl", process=1, stride=2, start_ns=start_ns) as reader,
    ):
        race = Race(bootstrap, topic, version=int(version), writer=writer, reader=reader)
        asyncio.run(race.run(rounds))
    click.echo(f"{race.accepted_count} of {rounds} late requests were accepted")


if __name__ == "__main__":
    main()
