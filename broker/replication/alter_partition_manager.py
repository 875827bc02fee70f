"""ISR changes that the leaders of this node propose to the controller: AlterPartition (KIP-497).

One request at a time has all proposals made while the one before was in flight (Kafka: `AlterPartitionManager`). A
request without an answer is retried without limit: only newer metadata, or the controller's answer that the ISR is
unchanged, ends a proposal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import BrokerEpoch, NodeId, PartitionEpoch
from ..cluster.controller_channel import ControllerChannel
from ..replicas.partition import Partition
from ..replicas.rules.in_sync_replicas import IsrProposal

if TYPE_CHECKING:
    from kio.schema.alter_partition.v3.request import AlterPartitionRequest
    from kio.schema.alter_partition.v3.response import PartitionData as PartitionAnswer

logger = logging.getLogger(__name__)

RETRY_MS: Final = 50
"""Kafka's, too. The channel has waited for a controller for as long as a request may take before it gives up."""


class AlterPartitionManager:
    def __init__(
        self,
        channel: ControllerChannel,
        *,
        node_id: NodeId,
        broker_epoch: Callable[[], BrokerEpoch],
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[str], None],
    ) -> None:
        self._channel = channel
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._loop = loop
        self._on_failure = on_failure
        self._waiting: dict[Partition, IsrProposal] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self.shrink_count = 0
        self.expand_count = 0
        """Proposals that the controller accepted, since start."""
        self.failed_count = 0
        """Those that it refused, and requests without an answer."""

    def submit(self, partition: Partition, proposal: IsrProposal) -> None:
        """Takes the place of what was proposed for the partition before and has not been sent yet."""
        if self._is_stopped:
            return
        self._waiting[partition] = proposal
        if self._task is None:
            self._task = self._loop.create_task(self._send_all())

    async def stop(self) -> None:
        """Nothing is proposed any more."""
        self._is_stopped = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                sent, self._waiting = self._waiting, {}
                current = {
                    partition: proposal
                    for partition, proposal in sent.items()
                    if partition.state.pending_isr is proposal
                }
                if current and not await self._send(current):
                    await asyncio.sleep(RETRY_MS / 1000)
        except Exception:
            logger.exception("Task failed: task=AlterPartition")
            self._on_failure("Telling the controller who is in sync ended by an unexpected error, see the log.")
        finally:
            self._task = None

    async def _send(self, proposals: Mapping[Partition, IsrProposal]) -> bool:
        """False when some of it has to be said again."""
        from ...quorum.decisions.isr_changes import ALTER_PARTITION

        try:
            response = await self._channel.submit(ALTER_PARTITION, self._request(proposals))
        except KafkaError as error:
            logger.warning("AlterPartition failed, retrying: partitions=%d reason=%s", len(proposals), error)
            retried_count = sum(self._refuse(partition, proposal, None) for partition, proposal in proposals.items())
            return retried_count == 0
        answers = {
            (topic.topic_id, int(partition.partition_index)): partition
            for topic in response.topics
            for partition in topic.partitions
        }
        # Each of them, not up to the first.
        retried_count = sum(
            self._take_in(partition, proposal, answers.get((partition.topic_id, partition.index)))
            for partition, proposal in proposals.items()
        )
        return retried_count == 0

    def _take_in(self, partition: Partition, proposal: IsrProposal, answer: PartitionAnswer | None) -> bool:
        """Whether it has to be said again."""
        error = None if answer is None else ErrorCode(int(answer.error_code))
        # Thousands at once when a node fails or returns, of which the active controller has a line (`BrokerOutages`).
        logger.debug(
            "AlterPartition response: topic=%s partition=%d proposed=%s answer=%s",
            partition.topic,
            partition.index,
            [replica for replica, _ in proposal.members],
            "none" if error is None else error.name,
        )
        if answer is not None and error is ErrorCode.NONE:
            self.shrink_count += proposal.size_change < 0
            self.expand_count += proposal.size_change > 0
            partition.state.on_isr_changed(proposal, PartitionEpoch(answer.partition_epoch))
            return False
        return self._refuse(partition, proposal, error)

    def _refuse(self, partition: Partition, proposal: IsrProposal, error: ErrorCode | None) -> bool:
        self.failed_count += 1
        retried = partition.state.on_isr_refused(proposal, error)
        if retried is None:
            return False
        self.submit(partition, retried)
        return True

    def _request(self, proposals: Mapping[Partition, IsrProposal]) -> AlterPartitionRequest:
        # A node whose partitions have no followers starts without loading these.
        from kio.schema.alter_partition.v3.request import (
            AlterPartitionRequest,
            BrokerState,
            PartitionData,
            TopicData,
        )
        from kio.schema.types import BrokerId
        from kio.static.primitive import i32, i64

        broker_epoch = self._broker_epoch()
        topics: dict[UUID, list[PartitionData]] = {}
        for partition, proposal in proposals.items():
            members = tuple(
                BrokerState(
                    broker_id=BrokerId(replica),
                    broker_epoch=i64(broker_epoch if replica == self._node_id else epoch),
                )
                for replica, epoch in proposal.members
            )
            topics.setdefault(partition.topic_id, []).append(
                PartitionData(
                    partition_index=i32(partition.index),
                    leader_epoch=i32(proposal.leader_epoch),
                    new_isr_with_epochs=members,
                    partition_epoch=i32(proposal.partition_epoch),
                )
            )
        return AlterPartitionRequest(
            broker_id=BrokerId(self._node_id),
            broker_epoch=i64(broker_epoch),
            topics=tuple(
                TopicData(topic_id=topic_id, partitions=tuple(partitions)) for topic_id, partitions in topics.items()
            ),
        )
