"""Samples of any cluster that speaks Kafka's protocol: leaders, epochs, ISRs and high watermarks, told by its brokers.

Brokers are asked at their own addresses. What replicas that do not lead have is not in the protocol for clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.list_offsets.v8.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from ...client.connection import Connection, connect
from ...protocol.errors import CorruptData, KafkaError
from ..histories.cluster_sample import ClusterSample, PartitionSample
from .sampler import ANSWER_S, Sampler

_QUORUM: Final = DescribeQuorumRequest(
    topics=(TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(PartitionData(partition_index=i32(0)),)),)
)
_CLIENT: Final = BrokerId(-1)
_READ_UNCOMMITTED: Final = i8(0)
_LATEST: Final = i64(-1)


class ProtocolSampler(Sampler):
    """`addresses` are those of brokers by id, asked anew for each sample, as is `state` of a broker."""

    def __init__(
        self,
        path: Path,
        *,
        addresses: Callable[[], Mapping[int, tuple[str, int]]],
        state: Callable[[int], str],
        topics: Sequence[str],
        start_ns: int,
    ) -> None:
        super().__init__(path, start_ns=start_ns)
        self._addresses = addresses
        self._state = state
        self._metadata = MetadataRequest(
            topics=tuple(MetadataRequestTopic(topic_id=None, name=TopicName(topic)) for topic in topics),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )

    async def sample(self, time_ns: int) -> ClusterSample:
        addresses = self._addresses()
        states = {str(node): self._state(node) for node in addresses}
        running = [node for node in addresses if states[str(node)] == "up"]
        answers = await asyncio.gather(*(self._ask(node, *addresses[node]) for node in running))
        partitions: dict[str, PartitionSample] = {}
        controller: tuple[int, int | None] = -1, None
        for answer in answers:
            controller = max(controller, answer.controller, key=lambda one: one[0])
            for key, told in answer.partitions.items():
                if key not in partitions or told.epoch > partitions[key].epoch:
                    partitions[key] = told
        # A high watermark is what the leader says, and is told by a broker that believes that it leads.
        for answer in answers:
            for key, (epoch, hw) in answer.high_watermarks.items():
                if key in partitions and partitions[key].epoch == epoch:
                    partitions[key].hw = max(partitions[key].hw or 0, hw)
        return ClusterSample(time_ns, controller[1], states, partitions)

    async def close(self) -> None:
        """Connections live as long as a question."""

    async def _ask(self, node: int, host: str, port: int) -> _Told:
        """As far as it answers in time."""
        told = _Told()
        try:
            async with (
                asyncio.timeout(ANSWER_S),
                await connect(host, port, client_id="samples", timeout_ms=round(ANSWER_S * 1000)) as connection,
            ):
                metadata: Any = await connection.call(self._metadata)
                told.take_metadata(metadata)
                await told.ask_high_watermarks(connection, node)
                told.take_quorum(await connection.call(_QUORUM))
        except (OSError, CorruptData, KafkaError):
            pass
        return told


@dataclass(slots=True)
class _Told:
    """By one broker."""

    partitions: dict[str, PartitionSample] = field(default_factory=dict)
    high_watermarks: dict[str, tuple[int, int]] = field(default_factory=dict)
    """With the leader epoch, of partitions that the broker leads."""
    controller: tuple[int, int | None] = -1, None

    def take_metadata(self, answer: Any) -> None:
        for topic in answer.topics:
            for one in topic.partitions:
                leader = int(one.leader_id)
                self.partitions[f"{topic.name}-{one.partition_index}"] = PartitionSample(
                    leader if leader >= 0 else None, int(one.leader_epoch), [int(node) for node in one.isr_nodes]
                )

    async def ask_high_watermarks(self, connection: Connection, node: int) -> None:
        led: dict[str, list[ListOffsetsPartition]] = {}
        for key, one in self.partitions.items():
            topic, _, number = key.rpartition("-")
            if one.leader == node:
                led.setdefault(topic, []).append(
                    ListOffsetsPartition(
                        partition_index=i32(int(number)), current_leader_epoch=i32(one.epoch), timestamp=_LATEST
                    )
                )
        if not led:
            return
        question = ListOffsetsRequest(
            replica_id=_CLIENT,
            isolation_level=_READ_UNCOMMITTED,
            topics=tuple(
                ListOffsetsTopic(name=TopicName(topic), partitions=tuple(numbers)) for topic, numbers in led.items()
            ),
        )
        answer: Any = await connection.call(question)
        for topic in answer.topics:
            for one in topic.partitions:
                key = f"{topic.name}-{one.partition_index}"
                if not one.error_code and int(one.offset) >= 0:
                    self.high_watermarks[key] = self.partitions[key].epoch, int(one.offset)

    def take_quorum(self, answer: Any) -> None:
        for topic in answer.topics:
            for one in topic.partitions:
                if not one.error_code and int(one.leader_id) >= 0:
                    self.controller = int(one.leader_epoch), int(one.leader_id)
