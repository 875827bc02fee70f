"""Topics that live as long as one measurement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from ..client import clock
from ..client.client_log import SILENT_LOGGER
from .target import Target

TIMEOUT_S: Final = 120.0
# Asking is work for the broker too, and it is busy with what is asked about.
_POLL_S: Final = 0.05

_made = 0


def admin(bootstrap: str) -> AdminClient:
    """A client for topics."""
    return AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)


@contextmanager
def new_topic(target: Target, partitions: int) -> Iterator[str]:
    """A topic with as many replicas as the target has for it, whose partitions all answer; deleted at the end."""
    global _made
    _made += 1
    name = f"penstock-bench-{clock.now_ms()}-{_made}"
    client = admin(target.bootstrap)
    create(client, name, partitions, replicas=target.replicas)
    wait_serving(target.bootstrap, name, partitions)
    try:
        yield name
    finally:
        client.delete_topics([name], operation_timeout=TIMEOUT_S)[name].result(TIMEOUT_S)


def create(client: AdminClient, name: str, partitions: int, *, replicas: int = 1) -> None:
    """Returns when the broker has answered; raises ClickException when it refuses."""
    topic = NewTopic(name, num_partitions=partitions, replication_factor=replicas)
    try:
        client.create_topics([topic], operation_timeout=TIMEOUT_S, request_timeout=TIMEOUT_S)[name].result(TIMEOUT_S)
    except KafkaException as error:
        raise click.ClickException(f"The topic to measure with was refused: {error.args[0].str()}") from error


def wait_serving(bootstrap: str, name: str, partitions: int) -> None:
    """Until every partition tells its offsets: metadata can be ahead of the logs that it speaks of."""
    deadline_s = clock.monotonic_s() + TIMEOUT_S
    waiting = {TopicPartition(name, partition) for partition in range(partitions)}
    while waiting:
        # A client anew each time: librdkafka goes on believing, without asking, that a partition has no leader.
        # Metadata come first: a look for leaders before there is a connection is repeated after a second or three.
        client = admin(bootstrap)
        client.list_topics(name, timeout=TIMEOUT_S)
        answers = client.list_offsets({partition: OffsetSpec.latest() for partition in waiting}, request_timeout=60)
        for partition, answer in answers.items():
            if answer.exception() is None:
                waiting.discard(partition)
        if waiting and clock.monotonic_s() > deadline_s:
            raise click.ClickException(f"{len(waiting)} partitions of a new topic do not answer after {TIMEOUT_S:g} s.")
        if waiting:
            clock.pause(_POLL_S)


def stored_records(target: Target, name: str, partitions: int) -> int:
    """How many records the topic holds, by its end offsets."""
    wanted = {TopicPartition(name, partition): OffsetSpec.latest() for partition in range(partitions)}
    client = admin(target.bootstrap)  # kept by name: it must outlive its answers
    answers = client.list_offsets(wanted, request_timeout=60)
    return sum(answer.result(TIMEOUT_S).offset for answer in answers.values())


def leaders(target: Target, name: str) -> dict[tuple[str, int], list[int]]:
    """The partitions of a topic by the address of who leads them."""
    metadata = admin(target.bootstrap).list_topics(name, timeout=TIMEOUT_S)
    found: dict[tuple[str, int], list[int]] = {}
    for partition in sorted(metadata.topics[name].partitions.values(), key=lambda state: state.id):
        broker = metadata.brokers[partition.leader]
        found.setdefault((str(broker.host), broker.port), []).append(partition.id)
    return found
