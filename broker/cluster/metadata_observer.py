"""Metadata for a node that does not vote: it fetches the committed log from any voter, and keeps it (KIP-595, KIP-630).

The node follows one voter as long as that one answers, and turns to the next one after any timeout. The leader that the
voter names is where requests for the controller go first (`remote_controller_channel.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final

from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kio.schema.fetch.v18.response import FetchResponse, PartitionData
from kio.schema.fetch_snapshot.v1.request import FetchSnapshotRequest, PartitionSnapshot, TopicSnapshot
from kio.schema.fetch_snapshot.v1.request import SnapshotId as WireSnapshotId
from kio.schema.fetch_snapshot.v1.response import FetchSnapshotResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32, i32Timedelta, i64

from ...client.connection import Connection
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import NO_CONTROLLER_EPOCH, NO_NODE, ControllerEpoch, NodeId
from ...protocol.no_quorum import no_quorum
from ...quorum.links.rules.peer_proof import PeerRefused
from ...quorum.metadata.image import MetadataImage
from ...quorum.metadata.loader import MetadataLoader
from ...quorum.metadata.metadata_log import METADATA_TOPIC, METADATA_TOPIC_ID, SnapshotId
from ...quorum.metadata.publishers import Publishers
from ...quorum.metadata.snapshot_records import image_chunks
from ...quorum.metadata.snapshot_schedule import SnapshotSchedule
from ...quorum.metadata.voters import Voter
from ...quorum.raft.consensus import ConsensusFailed
from ...quorum.raft.quorum_notice import QuorumNotice
from ...quorum.voter.observer_log import ObserverLog
from ...quorum.voter.snapshot_saver import write_snapshot
from ...quorum.voter.snapshots import SnapshotWriter
from ...storage.disk.rules.disk_errors import is_passing
from ...storage.disk.shielded_call import run_unbroken
from ..configuration.quorum_times import QuorumTimes
from ..timing.runtime import Runtime
from .peers import PeerConnector
from .rules.voter_choice import SilentVoters, VoterChoice

logger = logging.getLogger(__name__)

# Of one answer, which must be here within `controller.quorum.fetch.timeout.ms`; as in Kafka.
FETCH_BYTES: Final = 1024 * 1024
SNAPSHOT_FETCH_BYTES: Final = 1024 * 1024
# Before the voters are tried again, when none was of use.
RETRY_MS: Final = 50


class _DiskRefusedError(Exception):
    """For want of room, descriptors or memory; nothing that was not taken in is kept."""


def _refused(error: OSError) -> Exception:
    return _DiskRefusedError(str(error)) if is_passing(error) else error


class MetadataObserver:
    """Follows the quorum until it is cancelled. Calls `on_failure` with the reason why the node must stop."""

    def __init__(
        self,
        log: ObserverLog,
        publishers: Publishers,
        peers: PeerConnector,
        *,
        node_id: NodeId,
        voters: Mapping[NodeId, Voter],
        silent: SilentVoters,
        times: QuorumTimes,
        snapshot_schedule: SnapshotSchedule,
        runtime: Runtime,
    ) -> None:
        self._log = log
        self._loader = MetadataLoader(publishers)
        self._peers = peers
        self._node_id = node_id
        self._voters = dict(voters)
        self._choice = VoterChoice(voters, silent)
        self._times = times
        self._snapshot_schedule = snapshot_schedule
        self._loop = runtime.loop
        self._wall_clock_ms = runtime.wall_clock_ms
        self._now_ms = runtime.monotonic_ms
        self._said: dict[int, str] = {}
        self._unreached: set[NodeId] = set()
        self._notice = QuorumNotice()
        self.leader_id: NodeId | None = None
        self.epoch = NO_CONTROLLER_EPOCH

    @property
    def image(self) -> MetadataImage:
        return self._loader.image

    def load(self) -> None:
        """Takes in what this node has on its disk. Raises ConsensusFailed, CorruptData, UnknownRecord, ReplayError."""
        snapshot = self._log.latest_snapshot()
        if snapshot is not None:
            self._loader.load_snapshot(snapshot.chunks, end_offset=snapshot.end_offset, epoch=snapshot.epoch)
        for entry in self._log.recover(self._wall_clock_ms()):
            self._loader.load_entry(entry.offset, entry.epoch, entry.command)
        self._loader.catch_up()

    async def run(self) -> None:
        """Raises only what the node cannot go on with: errors of its own disk, records that it does not know."""
        choice = self._choice
        while True:
            voter_id = choice.choose(self.leader_id, self._now_ms())
            voter = self._voters[voter_id]
            try:
                connection, _ = await self._peers.connect(
                    voter.host, voter.port, node_id=voter_id, timeout_ms=self._times.request_timeout_ms
                )
            except TimeoutError as error:
                self._unreached.add(voter_id)
                self._say(voter_id, str(error))
                choice.on_silent(voter_id, self._now_ms())
            except (ConnectionError, CorruptData, PeerRefused) as error:
                self._unreached.add(voter_id)
                self._say(voter_id, str(error))
                choice.on_refused(voter_id)
            else:
                self._said.pop(voter_id, None)
                async with connection:
                    await self._follow(voter_id, connection)
            if self.leader_id == voter_id:
                # It may lead no more, and its word was all there was.
                self.leader_id = None
            self._notice.note(self.no_quorum(), self._now_ms())
            if choice.is_round_over(self._now_ms()):
                await asyncio.sleep(RETRY_MS / 1000)

    def no_quorum(self) -> str | None:
        """The sentence, when no voter leads and this node reaches no majority of them."""
        return None if self.leader_id is not None else no_quorum(tuple(self._voters), self._unreached)

    def close(self) -> None:
        self._log.close()

    def _say(self, voter_id: NodeId, reason: str) -> None:
        """Once for each reason: it is tried again many times a second."""
        if self._said.get(voter_id) != reason:
            self._said[voter_id] = reason
            logger.warning("Connection to voter could not be established: voter=%d reason=%s", voter_id, reason)

    async def _follow(self, voter_id: NodeId, connection: Connection) -> None:
        """Until this voter is of no use any more."""
        try:
            while await self._fetch(voter_id, connection):
                self._choice.on_useful(voter_id)
                await self._save_snapshot_if_due()
            self._choice.on_refused(voter_id)
        except TimeoutError as error:
            logger.info("Disconnected from voter: voter=%d reason=%s", voter_id, error)
            self._unreached.add(voter_id)
            self._choice.on_silent(voter_id, self._now_ms())
        except _DiskRefusedError as error:
            self._say(voter_id, f"the metadata log is not written, retrying: {error}")
            # Not its fault; but a round ends with a pause.
            self._choice.on_refused(voter_id)
        except (ConnectionError, CorruptData, KafkaError) as error:
            logger.info("Disconnected from voter: voter=%d reason=%s", voter_id, error)
            self._choice.on_refused(voter_id)

    async def _fetch(self, voter_id: NodeId, connection: Connection) -> bool:
        """Whether the voter had an answer, which has been taken in."""
        response = await connection.call(self._question(), timeout_ms=self._times.fetch_timeout_ms)
        assert isinstance(response, FetchResponse)
        self._unreached.discard(voter_id)
        partition = _only_partition(response)
        if partition is None:
            return False
        if partition.current_leader.leader_epoch >= self.epoch:
            self.epoch = ControllerEpoch(partition.current_leader.leader_epoch)
            leader_id = NodeId(partition.current_leader.leader_id)
            self.leader_id = None if leader_id == NO_NODE else leader_id
            if self.leader_id is not None:
                # A majority elected it.
                self._unreached.clear()
        if partition.error_code:
            logger.debug("Fetch of the metadata log failed: voter=%d error=%s", voter_id, partition.error_code.name)
            return False
        if partition.snapshot_id.end_offset >= 0:
            wanted = SnapshotId(partition.snapshot_id.end_offset, ControllerEpoch(partition.snapshot_id.epoch))
            await self._fetch_snapshot(connection, wanted)
        elif partition.diverging_epoch.end_offset >= 0:
            # Only committed entries are served, and those never change.
            raise ConsensusFailed(
                f"The metadata log of this node goes another way than that of voter {voter_id}, which does "
                f"not have its last entry, offset {self._log.end_offset - 1} of epoch {self._log.last_epoch}."
            )
        elif partition.records:
            await self._take_in(bytes(partition.records))
        return True

    def _question(self) -> FetchRequest:
        partition = FetchPartition(
            partition=i32(0),
            fetch_offset=i64(self._log.end_offset),
            last_fetched_epoch=i32(self._log.last_epoch if self._log.end_offset else -1),
            partition_max_bytes=i32(FETCH_BYTES),
        )
        return FetchRequest(
            cluster_id=self.image.cluster_id,
            replica_state=ReplicaState(replica_id=BrokerId(self._node_id)),
            max_wait=i32Timedelta.parse(timedelta(milliseconds=self._times.fetch_wait_ms)),
            min_bytes=i32(1),
            max_bytes=i32(FETCH_BYTES),
            topics=(FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
            forgotten_topics_data=(),
        )

    async def _take_in(self, records: bytes) -> None:
        try:
            entries = self._log.append(records, now_ms=self._wall_clock_ms())
        except OSError as error:
            raise _refused(error) from error
        for entry in entries:
            self._loader.load_entry(entry.offset, entry.epoch, entry.command)
            # There are some hundred of them at most, and others want to be served between.
            await asyncio.sleep(0)

    async def _save_snapshot_if_due(self) -> None:
        image, now_ms = self._loader.image, self._now_ms()
        if self._loader.is_in_transaction or not self._snapshot_schedule.is_due(
            new_bytes=self._log.bytes_since_snapshot, has_new=image.offset >= self._log.start_offset, now_ms=now_ms
        ):
            return
        self._snapshot_schedule.on_snapshot(now_ms)
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        writer: SnapshotWriter | None = None
        try:
            writer = self._log.snapshot_writer(snapshot_id)
            await write_snapshot(
                writer,
                image_chunks(image),
                in_executor=partial(run_unbroken, self._loop),
                # Stopping cancels this task; what is unfinished is removed at the next start.
                is_stopping=lambda: False,
            )
        except OSError as error:
            if not is_passing(error):
                raise
            # Nothing depends on it: the log has it all, and the next one is tried when that has grown as much.
            logger.error("Failed to write metadata snapshot: end_offset=%d error=%s", snapshot_id.end_offset, error)
            if writer is not None:
                with suppress(OSError):
                    writer.give_up()
            return
        self._log.trim(snapshot_id, self._wall_clock_ms())

    async def _fetch_snapshot(self, connection: Connection, snapshot_id: SnapshotId) -> None:
        download = self._log.begin_snapshot(snapshot_id)
        size_bytes = -1
        while download.size_bytes != size_bytes:
            response = await connection.call(
                self._snapshot_question(snapshot_id, download.size_bytes), timeout_ms=self._times.fetch_timeout_ms
            )
            assert isinstance(response, FetchSnapshotResponse)
            if response.error_code:
                raise KafkaError(ErrorCode(int(response.error_code)))
            partition = response.topics[0].partitions[0]
            if partition.error_code:
                raise KafkaError(ErrorCode(int(partition.error_code)))
            if partition.position != download.size_bytes or not partition.unaligned_records:
                raise CorruptData(f"{connection.peer} answered with bytes {partition.position} of a snapshot")
            size_bytes = partition.size
            try:
                await run_unbroken(self._loop, download.append, bytes(partition.unaligned_records))
            except OSError as error:
                raise _refused(error) from error
        try:
            snapshot = await run_unbroken(self._loop, self._log.install_snapshot, download)
        except ConsensusFailed as error:
            raise CorruptData(f"{connection.peer} sent a snapshot that is not whole: {error}") from error
        read = partial(
            self._loader.read_snapshot, snapshot.chunks, end_offset=snapshot.end_offset, epoch=snapshot.epoch
        )
        self._loader.take_snapshot(await self._loop.run_in_executor(None, read))
        self._snapshot_schedule.on_snapshot(self._now_ms())
        logger.info("Downloaded metadata snapshot: end_offset=%d bytes=%d", snapshot.end_offset, size_bytes)

    def _snapshot_question(self, snapshot_id: SnapshotId, position: int) -> FetchSnapshotRequest:
        partition = PartitionSnapshot(
            partition=i32(0),
            current_leader_epoch=i32(-1),
            snapshot_id=WireSnapshotId(end_offset=i64(snapshot_id.end_offset), epoch=i32(snapshot_id.epoch)),
            position=i64(position),
        )
        return FetchSnapshotRequest(
            cluster_id=self.image.cluster_id,
            replica_id=BrokerId(self._node_id),
            max_bytes=i32(SNAPSHOT_FETCH_BYTES),
            topics=(TopicSnapshot(name=TopicName(METADATA_TOPIC), partitions=(partition,)),),
        )


def _only_partition(response: FetchResponse) -> PartitionData | None:
    if response.error_code:
        logger.warning("Fetch of the metadata log failed: error=%s", response.error_code.name)
        return None
    return response.responses[0].partitions[0] if response.responses and response.responses[0].partitions else None
