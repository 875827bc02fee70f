"""An application that reads a topic and writes another in transactions, made to be killed: a program of its own.

It reads some records, writes one output for each, `<partition> <offset> <transaction> <value>` of the input, to the
partitions of the target in turn, and commits the outputs together with the offsets that it has read up to (KIP-98,
KIP-447). Some transactions it aborts by itself. It ends in order with SIGTERM.

What it does is one line each in its history, which outlives it; a line that is cut off was never told:

    begin NAME | commit NAME COUNT | committed NAME | aborted NAME | again SENTENCE | failed SENTENCE

Its group has one static member, so the successor of a killed process takes its place at once.

librdkafka (2.16.1) drops what is queued when it aborts, also records that were sent and wait to be sent again, and
gives their sequence numbers to the next ones. A broker that has the former takes as many of the latter for the same,
and the next transaction is committed without them; so it is with Apache Kafka. So nothing is queued when this
application aborts by itself, and after an error it goes on with a new producer, of another epoch.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import click
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from msgspec import Struct

from ...protocol.structs import replace
from ..checkers.copies import Attempt, Output, Place
from ..checkers.records import Stored

POLL_S: Final = 0.05
# A call that takes longer is called again, as librdkafka wants it.
CALL_TIMEOUT_S: Final = 10.0
SESSION_TIMEOUT_MS: Final = 6_000
# Longer than any fault: a transaction that times out is one that the coordinator aborts, and the application with it.
TRANSACTION_TIMEOUT_MS: Final = 60_000
QUICK_RETRIES: Final[Mapping[str, str | int]] = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "topic.metadata.refresh.fast.interval.ms": 20,
}
"""librdkafka's own are for networks: a fault would be over before they ask again."""
FAILED: Final = "failed"


class CopierOptions(Struct, frozen=True, kw_only=True):
    bootstrap: str
    source: str
    target: str
    target_partitions: int
    transactional_id: str
    group: str
    history: Path
    # Which start of the application this is; names of transactions begin with it.
    life: int
    seed: int
    max_records: int = 50
    abort_ratio: float = 0.1


def parse_output(partition: int, stored: Stored) -> Output:
    """Raises ValueError for what no copier wrote."""
    source_partition, source_offset, transaction, _ = stored.value.split(b" ", 3)
    source = Place(int(source_partition), int(source_offset))
    return Output(Place(partition, stored.offset), source, transaction.decode())


def read_attempts(lines: Iterable[str]) -> dict[str, Attempt]:
    """What a history tells, by the names of transactions."""
    attempts: dict[str, Attempt] = {}
    for line in lines:
        match line.split() if line.endswith("\n") else ():
            case ("begin", name):
                attempts[name] = Attempt()
            case ("commit", name, count):
                attempts[name] = Attempt(output_count=int(count))
            case ("committed", name):
                attempts[name] = replace(attempts[name], is_committed=True)
            case ("aborted", name):
                attempts[name] = replace(attempts[name], is_committed=False)
    return attempts


class TransactionalCopier:
    """One life of the application. What ends it before its time is raised as KafkaException."""

    def __init__(self, options: CopierOptions, note: Callable[[str], None]) -> None:
        """`note` takes a line of the history, and returns when it is written."""
        self._options = options
        self._note = note
        self._random = Random(options.seed)
        self._number = 0
        self._copied = 0
        common = {"bootstrap.servers": options.bootstrap, **QUICK_RETRIES}
        self._producer_settings = {
            **common,
            "transactional.id": options.transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "linger.ms": 1,
        }
        self._producer = Producer(self._producer_settings)
        self._consumer = Consumer(
            {
                **common,
                "group.id": options.group,
                "group.instance.id": options.transactional_id,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": SESSION_TIMEOUT_MS // 6,
                "fetch.wait.max.ms": 50,
            }
        )

    def run(self, is_over: Callable[[], bool]) -> None:
        """Copy until told that it is over."""
        # First of all: what the one before left open ends here, and only then may its offsets be asked for.
        self._until_done(lambda: self._producer.init_transactions(CALL_TIMEOUT_S))
        # With a callback the assignment is taken in `consume` and nowhere else: its offsets are never asked for while
        # a transaction of ours is open.
        self._consumer.subscribe([self._options.source], on_assign=lambda *_: None)
        try:
            while not is_over():
                messages = self._consumer.consume(self._options.max_records, POLL_S)
                self._copy([_input(message) for message in messages if message.error() is None])
        finally:
            self._consumer.close()

    def _copy(self, inputs: list[_Input]) -> None:
        if not inputs:
            return
        self._number += 1
        name = f"{self._options.life}-{self._number}"
        self._note(f"begin {name}")
        self._producer.begin_transaction()
        try:
            for read in inputs:
                self._write(read, name)
            group = self._consumer.consumer_group_metadata()
            ends = self._places({read.partition: read.offset + 1 for read in inputs})
            self._until_done(lambda: self._producer.send_offsets_to_transaction(ends, group, CALL_TIMEOUT_S))
            if self._random.random() < self._options.abort_ratio:
                while self._producer.flush(CALL_TIMEOUT_S):
                    pass
                self._abort(name, inputs)
                return
            self._note(f"commit {name} {len(inputs)}")
            self._until_done(lambda: self._producer.commit_transaction(CALL_TIMEOUT_S))
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._abort(name, inputs)
            self._producer = Producer(self._producer_settings)
            self._until_done(lambda: self._producer.init_transactions(CALL_TIMEOUT_S))
        else:
            self._note(f"committed {name}")

    def _write(self, read: _Input, name: str) -> None:
        self._producer.produce(
            self._options.target,
            b"%d %d %s %s" % (read.partition, read.offset, name.encode(), read.value),
            partition=self._copied % self._options.target_partitions,
        )
        self._copied += 1
        self._producer.poll(0)

    def _abort(self, name: str, inputs: list[_Input]) -> None:
        self._until_done(lambda: self._producer.abort_transaction(CALL_TIMEOUT_S))
        self._note(f"aborted {name}")
        for place in self._places({read.partition: read.offset for read in reversed(inputs)}):
            try:
                self._consumer.seek(place)
            except KafkaException as error:
                # No longer ours: its next owner begins where the last commit ended.
                if error.args[0].code() not in (KafkaError._STATE, KafkaError._UNKNOWN_PARTITION):
                    raise

    def _until_done(self, call: Callable[[], object]) -> None:
        while True:
            try:
                call()
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                self._note(f"again {error.args[0]}")
            else:
                return

    def _places(self, offsets: Mapping[int, int]) -> list[TopicPartition]:
        """Of the source, by partition."""
        return [TopicPartition(self._options.source, partition, offset) for partition, offset in offsets.items()]


class _Input(NamedTuple):
    partition: int
    offset: int
    value: bytes


def _input(message: Message) -> _Input:
    partition, offset, value = message.partition(), message.offset(), message.value()
    assert partition is not None, "a record comes from a place"
    assert offset is not None, "a record comes from a place"
    return _Input(partition, offset, value if isinstance(value, bytes) else b"")


@click.command()
@click.option("--bootstrap", required=True)
@click.option("--source", required=True)
@click.option("--target", required=True)
@click.option("--target-partitions", type=int, required=True)
@click.option("--transactional-id", required=True)
@click.option("--group", required=True)
@click.option("--history", type=click.Path(path_type=Path), required=True)
@click.option("--life", type=int, required=True)
@click.option("--seed", type=int, required=True)
def main(**given: object) -> None:
    """Copy records in transactions until SIGTERM."""
    options = CopierOptions(**given)  # type: ignore[arg-type] # click has made them what they are
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    with options.history.open("ab", buffering=0) as history:

        def note(line: str) -> None:
            os.write(history.fileno(), line.encode() + b"\n")

        try:
            TransactionalCopier(options, note).run(is_over.is_set)
        except KafkaException as error:
            note(f"{FAILED} {error.args[0]}")
            raise SystemExit(1) from error


if __name__ == "__main__":
    main()
