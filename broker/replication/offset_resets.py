"""Logs that end where the leader has nothing: the leader is asked what it has, and the log is cut or begun anew there.

Where only a tier has what is between, the log is begun where the leader's disk begins. The leader tells the epochs and
the producers before that: a follower needs no tier. Kafka: `AbstractFetcherThread.handleOutOfRangeError`,
`fetchOffsetAndTruncate`, `TierStateMachine`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ...protocol.errors import CorruptData, KafkaError
from ...protocol.ids import NodeId
from ...protocol.replica_fetch import FollowedPartition
from ...quorum.links.rules.peer_proof import PeerRefused
from ...storage.log.rules.tiered_history import TieredHistory
from ..cluster.peer_link import CONNECT_TIMEOUT_MS
from ..cluster.peers import PeerConnector
from ..replicas.partition import Partition
from .leader_offsets import LeaderOffsets, ask_leader_offsets
from .ports import FollowedLogs

logger = logging.getLogger(__name__)

QUESTIONS_MAX: Final = 8
"""At a time: each has a connection of its own."""


class OffsetResets:
    """Of partitions that follow one leader: one reset of each at a time."""

    def __init__(
        self,
        leader_id: NodeId,
        *,
        node_id: NodeId,
        logs: FollowedLogs,
        peers: PeerConnector,
        address: Callable[[], tuple[str, int] | None],
        position_of: Callable[[Partition], FollowedPartition | None],
        on_reset: Callable[[Partition], None],
        on_failure: Callable[[Partition, str], None],
    ) -> None:
        """`address` is where the metadata say that the leader is, `position_of` None for what does not follow it any
        more. `on_failure` comes with the reason, also when the log stays as it is."""
        self._leader_id = leader_id
        self._node_id = node_id
        self._logs = logs
        self._peers = peers
        self._address = address
        self._position_of = position_of
        self._on_reset = on_reset
        self._on_failure = on_failure
        self._tasks: dict[Partition, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(QUESTIONS_MAX)

    def begin(self, partition: Partition) -> None:
        if partition not in self._tasks:
            self._tasks[partition] = asyncio.get_running_loop().create_task(self._reset(partition))

    def cancel(self, partition: Partition) -> None:
        task = self._tasks.pop(partition, None)
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _reset(self, partition: Partition) -> None:
        try:
            async with self._turns:
                position, address = self._position_of(partition), self._address()
                if position is None or address is None:
                    return
                offsets = await ask_leader_offsets(
                    self._peers,
                    address,
                    partition.topic,
                    partition.index,
                    node_id=self._node_id,
                    leader_epoch=position.leader_epoch,
                    timeout_ms=CONNECT_TIMEOUT_MS,
                    is_tiered=partition.log.config.remote_storage_enable,
                )
            # It may have gone on meanwhile: what the leader had then says nothing of that.
            if self._position_of(partition) == position:
                self._apply(partition, offsets)
        except (ConnectionError, TimeoutError, CorruptData, PeerRefused, KafkaError) as error:
            self._on_failure(partition, str(error))
        finally:
            # Cancelled, it may be followed again already, and asked for anew.
            if self._tasks.get(partition) is asyncio.current_task():
                del self._tasks[partition]

    def _apply(self, partition: Partition, leader: LeaderOffsets) -> None:
        log_end_offset = partition.log.log_end_offset
        local_start_offset = leader.local_start_offset
        begin_offset = leader.log_start_offset if local_start_offset is None else local_start_offset
        if begin_offset <= log_end_offset <= leader.log_end_offset and leader.log_start_offset < log_end_offset:
            # Damage to a leader epoch, which no CRC covers, is one reason. It waits, longer each time.
            within = f"{begin_offset} to {leader.log_end_offset}"
            self._on_failure(partition, f"the leader refuses its offset, though it is within its log, {within}")
            return
        logger.warning(
            "Fetch offset is out of range, resetting it: topic=%s partition=%d leader=%d start=%d end=%d "
            "leaders_start=%d leaders_end=%d",
            partition.topic,
            partition.index,
            self._leader_id,
            partition.log.log_start_offset,
            log_end_offset,
            leader.log_start_offset,
            leader.log_end_offset,
        )
        if leader.log_end_offset < log_end_offset:
            self._logs.truncate({partition: leader.log_end_offset})
        else:
            # Where the leader's log begins too: it does not vouch for what this one has below.
            tiered = None
            if local_start_offset is not None and leader.log_start_offset < local_start_offset:
                tiered = TieredHistory(leader.log_start_offset, leader.leader_epochs)
            self._logs.restart(partition, begin_offset, leader.producers, tiered)
        self._on_reset(partition)
