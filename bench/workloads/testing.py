"""Tests of an application: how long until the first has a record on three replicas, and how many follow in a minute.

A test makes a topic of its own, produces a record with `acks=all` by a new client, and reads it back. Penstock's
cluster is that of the fixture, with proxies on its links where this machine has them, and healed between tests; Apache
Kafka's is three nodes that a test session would keep.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from msgspec import Struct

from ...chaos.testing.broker_properties import DEFAULTS
from ...chaos.testing.chaos_cluster import ChaosCluster
from ...client import clock
from ...local.errors import ClusterError
from ..quorum_state import cluster_pids
from ..target import Target
from ..topics import TIMEOUT_S, admin
from ..usage import cpu_s

_REPLICAS: Final = 3
_MILLISECONDS: Final = 1000
_SECONDS_A_MINUTE: Final = 60


class _Session(Struct, frozen=True, kw_only=True):
    """What a test is given; `begin` and `end` surround it."""

    bootstrap: str
    pids: tuple[int, ...]
    topic: Callable[[int], str]
    begin: Callable[[int], None] = lambda _: None
    end: Callable[[], None] = lambda: None


def testing(target: Target, *, tests: int) -> Mapping[str, float | None]:
    """Start a cluster of the target's kind and run so many tests."""
    start_s = clock.monotonic_s()
    with _penstock() if target.has_http else _other(target) as session:
        started_s = clock.monotonic_s() - start_s
        _produce(session, 0)
        first_s = clock.monotonic_s() - start_s
        first_cpu_s = cpu_s(session.pids)
        acknowledged_s = []
        begun_s = clock.monotonic_s()
        for number in range(1, tests + 1):
            session.begin(number)
            test_s = clock.monotonic_s()
            topic = _produce(session, number)
            acknowledged_s.append(clock.monotonic_s() - test_s)
            _read_back(session, topic)
            session.end()
        all_s = clock.monotonic_s() - begun_s
    return {
        "testing_cluster_s": started_s,
        "testing_first_s": first_s,
        "testing_first_cpu_s": first_cpu_s,
        "testing_next_median_ms": statistics.median(acknowledged_s) * _MILLISECONDS,
        "testing_next_worst_ms": max(acknowledged_s) * _MILLISECONDS,
        "testing_tests_per_minute": tests / all_s * _SECONDS_A_MINUTE,
    }


@contextmanager
def _penstock() -> Iterator[_Session]:
    with ChaosCluster() as cluster:
        yield _Session(
            bootstrap=cluster.bootstrap,
            pids=cluster.pids,
            topic=lambda _: cluster.topic(),
            begin=lambda number: cluster.begin_test(f"test-{number}"),
            end=cluster.end_test,
        )


@contextmanager
def _other(target: Target) -> Iterator[_Session]:
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster(DEFAULTS) as cluster:
        cluster.start()
        client = admin(cluster.bootstrap)

        def topic(number: int) -> str:
            name = f"test-{number}"
            client.create_topics([NewTopic(name, num_partitions=1, replication_factor=_REPLICAS)])[name].result(
                TIMEOUT_S
            )
            return name

        yield _Session(bootstrap=cluster.bootstrap, pids=cluster_pids(cluster), topic=topic)


def _produce(session: _Session, number: int) -> str:
    """Returns the topic. Raises ClusterError when the record is not acknowledged."""
    topic = session.topic(number)
    outcomes: list[object] = []
    producer = Producer({"bootstrap.servers": session.bootstrap, "acks": "all", "log_level": 0})
    producer.produce(topic, b"record", on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(TIMEOUT_S)
    if outcomes != [None]:
        raise ClusterError(f"a record of {topic} was not acknowledged within {TIMEOUT_S:g} s: {outcomes}")
    return topic


def _read_back(session: _Session, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": session.bootstrap, "group.id": "reader", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    if not consumer.consume(1, TIMEOUT_S):
        raise ClusterError(f"the record of {topic} was not read within {TIMEOUT_S:g} s")
    consumer.close()
