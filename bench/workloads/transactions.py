"""A transaction each 100 ms beside plain idempotent producing: what exactly-once costs, and how long a commit takes.

The same stream of records goes through librdkafka twice, as fast as it can: idempotent, and in transactions that are
committed every 100 ms, the client's own pause for it included. Then transactions of a few records follow each other at
that pace, and the time of each commit is taken from the call to the answer, when all of its records are acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter_ns
from typing import Final

import click
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from ...client import clock
from ...client.client_log import SILENT_LOGGER
from ..payloads import POOL_SIZE, values
from ..quantiles import latencies
from ..target import Target
from ..topics import new_topic
from ..usage import measured

VALUE_BYTES: Final = 1024
PARTITIONS: Final = 6
INTERVAL_S: Final = 0.1
RECORDS_PER_COMMIT: Final = 60
_CHUNK: Final = 1_000
_QUEUE_LIMIT: Final = 20_000
_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.2
_WARM_UP_COMMITS: Final = 10
_GB: Final = 1e9


def transactions(target: Target, *, records: int, commits: int) -> Mapping[str, float | None]:
    """`records` in each of the two streams, and `commits` small transactions."""
    found: dict[str, float | None] = {}
    with new_topic(target, PARTITIONS) as topic:
        for name, producer in (("idempotent", _producer(target)), ("transactional", _transactional(target, topic))):
            with measured(target.pids) as usage:
                _stream(producer, topic, records, is_transactional=name == "transactional")
            size_gb = records * VALUE_BYTES / _GB
            found[f"{name}_records_per_s"] = records / usage.seconds
            found[f"{name}_broker_cpu_s_per_gb"] = None if usage.broker_cpu_s is None else usage.broker_cpu_s / size_gb
            found[f"{name}_others_cores"] = usage.others_cores
        small = _transactional(target, f"{topic}-small")
        _commit_times(small, topic, _WARM_UP_COMMITS)
        times_ns = _commit_times(small, topic, commits)
        _check(target, topic, 2 * records + (_WARM_UP_COMMITS + commits) * RECORDS_PER_COMMIT)
    plain, in_transactions = found["idempotent_records_per_s"], found["transactional_records_per_s"]
    assert plain is not None, "a rate"
    assert in_transactions is not None, "a rate"
    return {**found, "transaction_time_ratio": plain / in_transactions, **latencies("transaction_commit", times_ns)}


def _producer(target: Target, **settings: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": target.bootstrap,
            "enable.idempotence": True,
            "delivery.report.only.error": True,
            "socket.nagle.disable": True,
            **settings,
        },
        logger=SILENT_LOGGER,
    )


def _transactional(target: Target, name: str) -> Producer:
    producer = _producer(target, **{"transactional.id": name})
    producer.init_transactions(_TIMEOUT_S)
    return producer


def _stream(producer: Producer, topic: str, records: int, *, is_transactional: bool) -> None:
    pool = values(VALUE_BYTES)
    messages = [{"value": pool[i % POOL_SIZE], "partition": i % PARTITIONS} for i in range(_CHUNK)]
    failures: list[str] = []

    def on_delivery(error: object, _message: object) -> None:
        if error is not None:
            failures.append(str(error))

    if is_transactional:
        producer.begin_transaction()
    next_s = clock.monotonic_s() + INTERVAL_S
    sent = 0
    while sent < records:
        while len(producer) > _QUEUE_LIMIT:
            producer.poll(0.001)
        chunk = messages[: min(_CHUNK, records - sent)]
        queued = producer.produce_batch(topic, chunk, on_delivery=on_delivery)
        if queued != len(chunk):
            raise click.ClickException(f"librdkafka took {queued} of {len(chunk)} records.")
        sent += queued
        if is_transactional and clock.monotonic_s() >= next_s:
            producer.commit_transaction(_TIMEOUT_S)
            producer.begin_transaction()
            next_s = clock.monotonic_s() + INTERVAL_S
    if is_transactional:
        producer.commit_transaction(_TIMEOUT_S)
    if producer.flush(_TIMEOUT_S) or failures:
        raise click.ClickException(f"Records were not acknowledged: {failures[:1] or 'time is over'}.")


def _commit_times(producer: Producer, topic: str, commits: int) -> Sequence[int]:
    """Nanoseconds of each commit."""
    pool = values(VALUE_BYTES)
    times_ns = []
    next_s = clock.monotonic_s()
    for _ in range(commits):
        producer.begin_transaction()
        for number in range(RECORDS_PER_COMMIT):
            producer.produce(topic, pool[number % POOL_SIZE], partition=number % PARTITIONS)
        if producer.flush(_TIMEOUT_S):
            raise click.ClickException("Records of a transaction were not acknowledged in time.")
        start_ns = perf_counter_ns()
        producer.commit_transaction(_TIMEOUT_S)
        times_ns.append(perf_counter_ns() - start_ns)
        next_s += INTERVAL_S
        clock.pause(max(0.0, next_s - clock.monotonic_s()))
    return times_ns


def _check(target: Target, topic: str, expected: int) -> None:
    """A read_committed reader finds all of it."""
    consumer = Consumer(
        {
            "bootstrap.servers": target.bootstrap,
            "group.id": "penstock-bench",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        },
        logger=SILENT_LOGGER,
    )
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
        received = 0
        ended: set[int | None] = set()
        deadline_s = clock.monotonic_s() + _TIMEOUT_S
        while len(ended) < PARTITIONS:
            if clock.monotonic_s() > deadline_s:
                raise click.ClickException(f"{target.name}: reading stopped at {received} of {expected} records.")
            for message in consumer.consume(_CHUNK, _POLL_S):
                error = message.error()
                if error is None:
                    received += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise click.ClickException(f"{target.name}: reading failed: {error}.")
    finally:
        consumer.close()
    if received != expected:
        raise click.ClickException(f"{target.name}: of {expected} committed records {received} are there.")
