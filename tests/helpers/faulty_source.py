"""A topic that is written by transactions, half of them aborted, while nodes that lead and coordinate are killed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pipeline_topics import Sent, send
from waiting import wait_for

from penstock.broker.coordination.key_partitions import partition_of_key
from penstock.client.client_log import SILENT_LOGGER
from penstock.client.cluster_metadata import ask_metadata
from penstock.local.cluster import LocalCluster

TRANSACTIONS_TOPIC: Final = "__transaction_state"
TRANSACTIONAL_ID: Final = "source"
TIMEOUT_S: Final = 60.0


class FaultySource:
    """Each `write` is a transaction that is aborted and one that is committed, of the same records."""

    def __init__(self, cluster: LocalCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap}, logger=SILENT_LOGGER)
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "transactional.id": TRANSACTIONAL_ID,
                "transaction.timeout.ms": 300_000,
                "partitioner": "murmur2_random",
            },
            logger=SILENT_LOGGER,
        )
        self._producer.init_transactions(TIMEOUT_S)
        self.aborted_count = 0

    def write(self, records: Sequence[Sent]) -> None:
        with self.writing(records):
            pass

    @contextmanager
    def writing(self, records: Sequence[Sent]) -> Iterator[None]:
        """While the body runs, the transaction that will be committed is open."""
        self._producer.begin_transaction()
        for record in records:
            send(self._producer, self._topic, record)
        self._producer.flush(TIMEOUT_S)
        self._producer.abort_transaction(TIMEOUT_S)
        self.aborted_count += len(records)
        self._producer.begin_transaction()
        for record in records:
            send(self._producer, self._topic, record)
        yield
        self._producer.commit_transaction(TIMEOUT_S)

    def kill_leader(self, partition: int) -> int:
        """SIGKILL to the leader of a partition of the topic. Returns the node, which is to be started again."""
        return self._kill(self._topic, partition)

    def kill_coordinator(self) -> int:
        """SIGKILL to the node that coordinates the transactions of this source."""
        return self._kill(TRANSACTIONS_TOPIC, None)

    def restart(self, node: int) -> None:
        """Waits until every replica is in sync again, so that the next kill leaves a majority."""
        self._cluster.start_node(node)
        wait_for(self._is_in_sync, "all replicas are in sync")

    def _kill(self, topic: str, partition: int | None) -> int:
        found: list[int] = []

        def is_led() -> bool:
            partitions = ask_metadata(self._admin, topic).topics[topic].partitions
            number = partition_of_key(TRANSACTIONAL_ID, len(partitions)) if partition is None else partition
            found[:] = [partitions[number].leader]
            return found[0] >= 0

        wait_for(is_led, f"{topic} is led")
        self._cluster.kill_node(found[0])
        return found[0]

    def _is_in_sync(self) -> bool:
        topics = ask_metadata(self._admin).topics.values()
        return all(len(one.isrs) == len(one.replicas) for topic in topics for one in topic.partitions.values())
