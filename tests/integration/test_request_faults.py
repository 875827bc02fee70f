"""A real node whose requests are refused, lost and held as ordered, and what librdkafka's producers make of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from fault_clients import ACKNOWLEDGED, DEADLINE_S, create_topic, end_offset, faulty_cluster, produce_once
from waiting import wait_for

from penstock.chaos.faults.node_faults import NodeFaults
from penstock.chaos.faults.request_faults import DISCONNECT, RequestFault, issue_tickets, read_hits
from penstock.local.cluster import LocalCluster

pytestmark = pytest.mark.integration


class Faulty:
    def __init__(self, cluster: LocalCluster, faults: NodeFaults) -> None:
        self.cluster = cluster
        self._faults = faults
        self._number = 0

    def topic(self) -> str:
        """A new one."""
        name = f"numbers-{self._number}"
        create_topic(self.cluster, name, partitions=1)
        return name

    def order(self, *, count: int | None = None, holds: bool = False, error: str | None = None) -> Path:
        """Produce requests, once they are carried out; returns the folder of the fault."""
        self._number += 1
        folder = self.cluster.folder / f"fault-{self._number}"
        issue_tickets(folder, count)
        self._faults.order_requests(
            RequestFault(
                number=self._number,
                folder=str(folder),
                api="Produce",
                at="before-ack",
                error=error,
                holds=holds,
                is_counted=count is not None,
            )
        )
        return folder

    def heal(self) -> None:
        self._faults.heal()


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    cluster, faults = faulty_cluster(tmp_path_factory.mktemp("faulty"))
    with cluster:
        yield Faulty(cluster, faults)


@pytest.mark.parametrize(("is_idempotent", "stored"), [(True, 1), (False, 3)])
@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", DISCONNECT])
def test_lost_answers_make_duplicates_unless_the_producer_is_idempotent(
    faulty: Faulty, error: str, is_idempotent: bool, stored: int
) -> None:
    topic = faulty.topic()
    folder = faulty.order(count=2, error=error)
    outcomes: list[KafkaError | None] = []

    def on_delivery(failure: KafkaError | None, message: Message) -> None:
        outcomes.append(failure)

    producer = Producer(
        {
            "bootstrap.servers": faulty.cluster.bootstrap,
            "enable.idempotence": is_idempotent,
            "retry.backoff.ms": 10,
            "log_level": 0,
        }
    )
    producer.produce(topic, b"once", partition=0, on_delivery=on_delivery)
    assert producer.flush(DEADLINE_S) == 0
    assert outcomes == [None]
    assert end_offset(faulty.cluster, topic) == stored
    assert [hit.api for hit in read_hits(folder)] == ["Produce"] * 2


def test_held_acknowledgement_is_stored_and_leaves_when_it_is_released(faulty: Faulty) -> None:
    topic = faulty.topic()
    folder = faulty.order(holds=True)
    with ThreadPoolExecutor(1) as pool:
        producing = pool.submit(produce_once, faulty.cluster, topic)
        wait_for(lambda: read_hits(folder), "the answer is held")
        assert end_offset(faulty.cluster, topic) == 1
        assert not producing.done()
        faulty.heal()
        assert producing.result(DEADLINE_S) == ACKNOWLEDGED
    assert os.listdir(folder) == ["hits"]
