"""A cluster of Apache Kafka as the target of a nemesis: its processes, asked over the Kafka protocol who leads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ...client.connection import Connection, connect
from ...local.apache_kafka.cluster import KafkaCluster
from ...protocol.errors import CorruptData, KafkaError
from .process_target import ProcessTarget
from .selectors import View

KAFKA_KINDS: Final = frozenset({"kill", "pause", "stop", "restart", "rolling-restart", "truncation"})
"""Kinds of faults that nodes can have which are processes and nothing more."""
# A JVM that has just been started takes its time over the first answer.
_ANSWER_MS: Final = 3_000
_QUORUM: Final = DescribeQuorumRequest(
    topics=(TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(PartitionData(partition_index=i32(0)),)),)
)


class KnownPartition(NamedTuple):
    """What one node says of a partition; the highest epoch is the latest, and the ISR has none of its own here."""

    leader_epoch: int
    leader: int
    is_in_sync: bool


class KafkaTarget(ProcessTarget):
    def __init__(self, cluster: KafkaCluster, topics: Sequence[str]) -> None:
        super().__init__(cluster.nodes, topics)

    @property
    def kinds(self) -> frozenset[str]:
        return KAFKA_KINDS

    def view(self, *, with_leaders: bool = True) -> View:
        nodes = tuple(self._nodes)
        if not with_leaders:
            return View(nodes=nodes)
        partitions, controllers = self._ask()
        leaders = {name: known.leader for name, known in partitions.items() if known.leader >= 0}
        return View(nodes=nodes, leaders=leaders, controller=max(controllers)[1] if controllers else None)

    def is_in_sync(self) -> bool:
        """A broker that was killed and is back at once counts for in sync until the controller has seen it: Apache
        Kafka has no question by which it could be told."""
        partitions, _ = self._ask()
        return bool(partitions) and all(known.is_in_sync for known in partitions.values())

    def _ask(self) -> tuple[dict[str, KnownPartition], list[tuple[int, int]]]:
        """Partitions under load by `t-0`, and (epoch, id) of active controllers, as the nodes say that run."""

        async def ask_all() -> list[tuple[dict[str, KnownPartition], tuple[int, int] | None] | None]:
            running = [node for node_id, node in self._nodes.items() if self.state(node_id) == "up"]
            return await asyncio.gather(*(self._ask_node(node.host, node.port) for node in running))

        latest: dict[str, KnownPartition] = {}
        controllers = []
        for told in asyncio.run(ask_all()):
            if told is None:
                continue
            for name, known in told[0].items():
                latest[name] = _latest(known, latest.get(name, known))
            if told[1] is not None:
                controllers.append(told[1])
        return latest, controllers

    async def _ask_node(self, host: str, port: int) -> tuple[dict[str, KnownPartition], tuple[int, int] | None] | None:
        try:
            async with await connect(host, port, client_id="nemesis", timeout_ms=_ANSWER_MS) as connection:
                return await self._partitions(connection), await _controller(connection)
        except (OSError, CorruptData, KafkaError):
            return None

    async def _partitions(self, connection: Connection) -> dict[str, KnownPartition]:
        question = MetadataRequest(
            topics=tuple(MetadataRequestTopic(topic_id=None, name=TopicName(topic)) for topic in self._topics),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        answer = await connection.call(question)
        assert isinstance(answer, MetadataResponse)
        return {
            f"{topic.name}-{one.partition_index}": KnownPartition(
                int(one.leader_epoch), int(one.leader_id), set(one.isr_nodes) >= set(one.replica_nodes)
            )
            for topic in answer.topics
            for one in topic.partitions
        }


def _latest(one: KnownPartition, other: KnownPartition) -> KnownPartition:
    """Of two that know the same epoch, either may be behind: in sync is what both say is."""
    if one.leader_epoch == other.leader_epoch:
        return one._replace(is_in_sync=one.is_in_sync and other.is_in_sync)
    return max(one, other, key=lambda known: known.leader_epoch)


async def _controller(connection: Connection) -> tuple[int, int] | None:
    """Epoch and id of the metadata quorum's leader; None while there is no leader."""
    answer = await connection.call(_QUORUM)
    for topic in getattr(answer, "topics", ()):
        for one in topic.partitions:
            if not one.error_code and one.leader_id >= 0:
                return int(one.leader_epoch), int(one.leader_id)
    return None
