"""A stream of records through librdkafka, Kafka's C client: sent as fast as it can, then read from the start.

Records are spread over the partitions one by one, as keys do it. All are acknowledged by all replicas (`acks=all`), and
counted in the broker afterwards. librdkafka's defaults gather for up to 5 ms, 10,000 records or 1 MB a batch. The
reader is kept from its habit of not asking for a second once 100,000 small records wait, and it starts at offset 0 of
each partition: where one begins librdkafka would ask half a second after it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click
from confluent_kafka import Consumer, Producer, TopicPartition

from ...client.client_log import SILENT_LOGGER
from ..payloads import POOL_SIZE, values
from ..target import Listener, Target
from ..topics import new_topic, stored_records
from ..usage import Usage, measured

BATCHING: Final[Mapping[str, Mapping[str, str | int]]] = {
    "default": {},
    "large": {"linger.ms": 100, "batch.num.messages": 100_000, "queue.buffering.max.messages": 1_000_000},
    "lz4": {"compression.type": "lz4"},
}
"""The producer's settings beside acks=all."""

FLUSH_TIMEOUT_S: Final = 120.0
_CHUNK: Final = 10_000
_READ_TIMEOUT_S: Final = 20.0
_GB: Final = 1e9


def stream(
    target: Target, *, size_bytes: int, batching: str, partitions: int, records: int, through: Listener | None = None
) -> Mapping[str, float | None]:
    """Produce and consume `records` records, through the plain listener or another one."""
    client = {"bootstrap.servers": target.bootstrap}
    if through is not None:
        client = {"bootstrap.servers": through.bootstrap, **through.client}
    with new_topic(target, partitions) as topic:
        with measured(target.pids) as sending:
            _produce(target, topic, size_bytes, partitions, records, {**client, **BATCHING[batching]})
        stored = stored_records(target, topic, partitions)
        if stored != records:
            raise click.ClickException(f"{target.name}: of {records} acknowledged records {stored} are there.")
        consumer = _consumer(client)
        try:
            with measured(target.pids) as reading:
                _consume(target, consumer, topic, partitions, records)
        finally:
            consumer.close()
    return {
        **throughput("produce", sending, records, size_bytes),
        **throughput("consume", reading, records, size_bytes),
    }


def throughput(verb: str, usage: Usage, records: int, size_bytes: int) -> dict[str, float | None]:
    """What came of moving these records, by the bytes of their values."""
    size_gb = records * size_bytes / _GB
    return {
        f"{verb}_records_per_s": records / usage.seconds,
        f"{verb}_mb_per_s": size_gb * 1000 / usage.seconds,
        f"{verb}_broker_cpu_s_per_gb": None if usage.broker_cpu_s is None else usage.broker_cpu_s / size_gb,
        f"{verb}_client_cpu_s_per_gb": usage.client_cpu_s / size_gb,
        f"{verb}_client_cores": usage.client_cpu_s / usage.seconds,
        f"{verb}_others_cores": usage.others_cores,
    }


def _produce(
    target: Target, topic: str, size_bytes: int, partitions: int, records: int, settings: Mapping[str, str | int]
) -> None:
    producer = Producer(
        {
            "acks": "all",
            "delivery.report.only.error": True,
            **settings,
        },
        logger=SILENT_LOGGER,
    )
    limit = int(settings.get("queue.buffering.max.messages", 100_000)) - _CHUNK
    pool = values(size_bytes)
    messages = [{"value": pool[i % POOL_SIZE], "partition": i % partitions} for i in range(_CHUNK)]
    failures: list[str] = []

    def on_delivery(error: object, _message: object) -> None:
        if error is not None:
            failures.append(str(error))

    sent = 0
    while sent < records:
        chunk = messages if records - sent >= _CHUNK else messages[: records - sent]
        while len(producer) > limit:
            producer.poll(0.001)
        queued = producer.produce_batch(topic, chunk, on_delivery=on_delivery)
        if queued != len(chunk):
            raise click.ClickException(f"librdkafka took {queued} of {len(chunk)} records.")
        sent += queued
    if producer.flush(FLUSH_TIMEOUT_S) or failures:
        raise click.ClickException(f"{target.name}: records were not acknowledged: {failures[:1] or 'time is over'}.")


def _consumer(client: Mapping[str, str]) -> Consumer:
    return Consumer(
        {
            **client,
            "group.id": "penstock-bench",
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 5,
        },
        logger=SILENT_LOGGER,
    )


def _consume(target: Target, consumer: Consumer, topic: str, partitions: int, records: int) -> None:
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    received = 0
    while received < records:
        messages = consumer.consume(min(_CHUNK, records - received), _READ_TIMEOUT_S)
        if not messages:
            raise click.ClickException(f"{target.name}: reading stopped at {received} of {records} records.")
        # An error instead of a record is rare enough to be looked for in the first one only.
        if messages[0].error() is not None:
            raise click.ClickException(f"{target.name}: reading failed: {messages[0].error()}.")
        received += len(messages)
