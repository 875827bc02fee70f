"""A member of a consumer group as a program of its own, with one of the Python clients: it does what each line says.

    read 10      reads so many records                         {"event": "read", "records": [[0, 0], …]}
    commit       commits what it has read                      {"event": "committed"}
    follow       reads and commits until there is a line       {"event": "read", …} each time there are records
    close        leaves the group and ends                     {"event": "closed", "at_s": 12.5}

Between lines it reads nothing, and stays a member. What a rebalance gives and takes comes in between:
{"event": "assigned", "partitions": [0], "at_s": 12.5}, and "revoked" or "lost", by the machine's monotonic clock.
A member that closes gives up all it has when it begins to, whether or not its client says so (aiokafka does not).
"""

from __future__ import annotations

import asyncio
import json
import select
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Protocol

import confluent_kafka
import kafka
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import CommitFailedError, IllegalOperation

from penstock.client.clock import monotonic_s

WAIT_S: Final = 0.1
LONG_WAIT_S: Final = 3.0
"""For kafka-python: a join that outlives the poll in which it began is never finished there, and the member stands
still (seen with 3.0.12: the answer to SyncGroup is received, and the assignment is never taken from it)."""
HEARTBEAT_MS: Final = 300
TIMEOUT_S: Final = 60.0
Record = tuple[int, int]
"""Partition and offset."""
LINES: Final = open(0, "rb", buffering=0)  # noqa: SIM115
"""Standard input, unbuffered, so that `select` sees what there is."""
_write_lock = threading.Lock()


def tell(event: str, **more: Any) -> None:
    with _write_lock:
        sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
        sys.stdout.flush()


def tell_change(event: str, partitions: Iterable[Any]) -> None:
    tell(event, partitions=sorted(one.partition for one in partitions), at_s=monotonic_s())


class Member(Protocol):
    def poll(self, max_count: int) -> list[Record]:
        """What there is, and not more than so many; it returns soon when there is nothing."""
        ...

    def commit(self) -> None:
        """All that was read. What the group has given to others by now is left to them."""
        ...

    def close(self) -> None: ...


class ConfluentMember:
    def __init__(self, options: Any) -> None:
        properties: dict[str, Any] = {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "group.protocol": options.protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": options.auto_commit_ms > 0,
        }
        if options.auto_commit_ms:
            properties["auto.commit.interval.ms"] = options.auto_commit_ms
        if options.protocol == "classic":
            properties |= {
                "session.timeout.ms": options.session_ms,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "partition.assignment.strategy": "range",
            }
        self._consumer = confluent_kafka.Consumer(properties)
        self._consumer.subscribe(
            [options.topic],
            on_assign=lambda _, partitions: tell_change("assigned", partitions),
            on_revoke=lambda _, partitions: tell_change("revoked", partitions),
            on_lost=lambda _, partitions: tell_change("lost", partitions),
        )

    def poll(self, max_count: int) -> list[Record]:
        records = []
        for message in self._consumer.consume(max_count, WAIT_S):
            partition, offset = message.partition(), message.offset()
            if message.error() is None and partition is not None and offset is not None:
                records.append((partition, offset))
        return records

    def commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() not in _NOT_COMMITTED:
                raise

    def close(self) -> None:
        self._consumer.close()


_NOT_COMMITTED: Final = frozenset(
    {
        confluent_kafka.KafkaError._NO_OFFSET,
        confluent_kafka.KafkaError.ILLEGAL_GENERATION,
        confluent_kafka.KafkaError.REBALANCE_IN_PROGRESS,
        confluent_kafka.KafkaError.UNKNOWN_MEMBER_ID,
        confluent_kafka.KafkaError.STALE_MEMBER_EPOCH,
        confluent_kafka.KafkaError.FENCED_MEMBER_EPOCH,
    }
)


class KafkaPythonMember:
    def __init__(self, options: Any) -> None:
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=options.bootstrap,
            group_id=options.group,
            auto_offset_reset="earliest",
            enable_auto_commit=options.auto_commit_ms > 0,
            auto_commit_interval_ms=options.auto_commit_ms or 5_000,
            session_timeout_ms=options.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            partition_assignment_strategy=[kafka.coordinator.assignors.range.RangePartitionAssignor],
        )
        self._consumer.subscribe([options.topic], listener=_KafkaPythonListener())

    def poll(self, max_count: int) -> list[Record]:
        polled = self._consumer.poll(timeout_ms=int(LONG_WAIT_S * 1000), max_records=max_count)
        return [(place.partition, record.offset) for place, records in polled.items() for record in records]

    def commit(self) -> None:
        with suppress(kafka.errors.CommitFailedError, kafka.errors.RebalanceInProgressError):
            self._consumer.commit()

    def close(self) -> None:
        self._consumer.close()


class _KafkaPythonListener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        tell_change("assigned", assigned)

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        tell_change("revoked", revoked)

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        tell_change("lost", lost)


class AiokafkaMember:
    """Its loop turns in a thread, also while nothing is asked of it."""

    def __init__(self, options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = ThreadPoolExecutor(1)
        self._thread.submit(self._loop.run_forever)
        self._consumer: Any = self._do(lambda: self._start(options))

    def _do(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(TIMEOUT_S)

    async def _start(self, options: Any) -> Any:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=options.bootstrap,
            group_id=options.group,
            auto_offset_reset="earliest",
            enable_auto_commit=options.auto_commit_ms > 0,
            auto_commit_interval_ms=options.auto_commit_ms or 5_000,
            session_timeout_ms=options.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        consumer.subscribe([options.topic], listener=_AiokafkaListener())
        await consumer.start()
        return consumer

    def poll(self, max_count: int) -> list[Record]:
        polled = self._do(lambda: self._consumer.getmany(timeout_ms=int(WAIT_S * 1000), max_records=max_count))
        return [(place.partition, record.offset) for place, records in polled.items() for record in records]

    def commit(self) -> None:
        # IllegalOperation: there is no partition that it has now.
        with suppress(CommitFailedError, IllegalOperation):
            self._do(lambda: self._consumer.commit())

    def close(self) -> None:
        self._do(lambda: self._consumer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.shutdown()


class _AiokafkaListener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        tell_change("assigned", assigned)

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        tell_change("revoked", revoked)


CLIENTS: Final[dict[str, Callable[[Any], Member]]] = {
    "confluent-kafka": ConfluentMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AiokafkaMember,
}


def read(member: Member, count: int) -> list[Record]:
    records: list[Record] = []
    end_s = monotonic_s() + TIMEOUT_S
    while len(records) < count and monotonic_s() < end_s:
        records += member.poll(count - len(records))
    return records


def follow(member: Member, *, commits: bool) -> None:
    while not select.select([LINES], [], [], 0)[0]:
        records = member.poll(100)
        if records:
            tell("read", records=records)
            if commits:
                member.commit()


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--client", choices=sorted(CLIENTS), required=True)
    parser.add_argument("--protocol", choices=["classic", "consumer"], default="classic")
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--session-ms", type=int, default=6_000)
    parser.add_argument("--auto-commit-ms", type=int, default=0, help="the interval; 0: commits when it is told")
    options = parser.parse_args()
    member = CLIENTS[options.client](options)
    while line := LINES.readline():
        match line.decode().split():
            case ["read", count]:
                tell("read", records=read(member, int(count)))
            case ["commit"]:
                member.commit()
                tell("committed")
            case ["follow"]:
                follow(member, commits=not options.auto_commit_ms)
            case ["close"]:
                at_s = monotonic_s()
                member.close()
                tell("closed", at_s=at_s)
                return


if __name__ == "__main__":
    main()
