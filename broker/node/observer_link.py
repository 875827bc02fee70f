"""A node that does not vote: the controllers are other nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse

from ...protocol.errors import ConfigError, CorruptData
from ...protocol.ids import NodeId
from ...protocol.no_quorum import node_names
from ...quorum.links.rules.peer_proof import PeerHello, PeerRefused
from ...quorum.links.rules.refusals import Refusals
from ...quorum.metadata.publishers import Publishers
from ...quorum.metadata.record_codec import UnknownRecord
from ...quorum.metadata.snapshot_schedule import SnapshotSchedule
from ...quorum.metadata.topics_delta import ReplayError
from ...quorum.raft.consensus import ConsensusFailed
from ...quorum.raft.quorum_notice import QuorumNotice
from ...quorum.voter.observer_log import ObserverLog
from ...storage.disk.files import Files
from ...storage.log.rules.config import LogConfig
from ..cluster.controller_channel import NodeControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..cluster.metadata_observer import MetadataObserver
from ..cluster.peers import PeerConnector
from ..cluster.quorum_link import QUORUM_ANSWER_TIMEOUT_MS
from ..cluster.remote_controller_channel import RemoteControllerChannel
from ..cluster.rules.voter_choice import SilentVoters
from ..cluster.tls_contexts import TlsContexts
from ..cluster.voter_access import VoterAccess
from ..configuration.node_config import NodeConfig
from ..metrics.metrics import Metrics
from ..network.request import RequestContext
from ..timing.runtime import Runtime

logger = logging.getLogger(__name__)

RETRY_S = 0.2
"""Between two rounds of asking the voters which cluster they are."""


class ObserverLink:
    """See `quorum_link.QuorumLink`."""

    def __init__(
        self,
        config: NodeConfig,
        files: Files,
        publishers: Publishers,
        metadata: MetadataCache,
        *,
        folder: str,
        hello: Callable[[], PeerHello],
        tls: TlsContexts,
        runtime: Runtime,
    ) -> None:
        self._config = config
        self._metadata = metadata
        peers = self._peers = PeerConnector(
            secret=config.cluster_secret,
            hello=hello,
            certificates=config.node_certificates,
            tls=tls.client(config.controller_listener_name),
        )
        self._runtime = runtime
        times = config.quorum_times
        self._silent = SilentVoters(times.request_timeout_ms)
        self._observer = MetadataObserver(
            ObserverLog(files, folder, config=LogConfig(retention_ms=-1)),
            publishers,
            peers,
            node_id=config.node_id,
            voters=config.voters,
            silent=self._silent,
            times=times,
            snapshot_schedule=SnapshotSchedule(
                max_bytes=config.metadata_log_max_record_bytes_between_snapshots,
                interval_ms=config.metadata_log_max_snapshot_interval_ms,
                now_ms=runtime.monotonic_ms(),
            ),
            runtime=runtime,
        )
        self._task: asyncio.Task[None] | None = None
        # Names of its changes are not those of an earlier run.
        self._started_ms = runtime.wall_clock_ms()
        self._channels: list[RemoteControllerChannel] = []
        self._voter_access = VoterAccess(peers, config.voters, node_id=config.node_id, now_ms=runtime.monotonic_ms)
        # Of its own: heartbeats wait in theirs while there is no controller.
        self._quorum_questions: RemoteControllerChannel | None = None

    @property
    def voter_access(self) -> VoterAccess:
        return self._voter_access

    @property
    def leader_id(self) -> NodeId | None:
        return self._observer.leader_id

    @property
    def handlers(self) -> None:
        return None

    async def find_cluster_id(self) -> str | None:
        waiting, notice = Refusals(self._runtime.loop.time), QuorumNotice()
        while True:
            for voter in self._config.voters.values():
                try:
                    connection, peer = await self._peers.connect(
                        voter.host, voter.port, timeout_ms=self._config.quorum_times.request_timeout_ms
                    )
                except (ConnectionError, TimeoutError, CorruptData, PeerRefused) as error:
                    reason = str(error)
                else:
                    await connection.close()
                    if peer.cluster_id is not None:
                        return peer.cluster_id
                    reason = f"node {voter.id} does not belong to a cluster yet"
                waiting.note(f"voter {voter.id}", f"waiting for the quorum: voter={voter.id} reason={reason}")
            names = node_names(tuple(self._config.voters))
            notice.note(f"{names} do not say yet which cluster this is", self._runtime.monotonic_ms())
            await asyncio.sleep(RETRY_S)

    async def start(self, cluster_id: str) -> Mapping[str, int]:
        try:
            self._observer.load()
        except (CorruptData, UnknownRecord, ReplayError) as error:
            raise ConsensusFailed(f"The metadata of this node cannot be loaded: {error}") from error
        known = self._metadata.image.cluster_id
        if known is not None and known != cluster_id:
            raise ConfigError(
                f"The metadata in {self._config.metadata_log_dir} is of cluster {known}, but the log directories "
                f"belong to cluster {cluster_id}."
            )
        self._task = self._runtime.loop.create_task(self._follow())
        return {}

    def add_metrics(self, metrics: Metrics) -> None:
        def load() -> Callable[[], None]:
            from ..metrics.quorum_reader import ObserverReader

            reader = ObserverReader(
                self._metadata, self._config.voters, metrics.watch, leader_id=lambda: self._observer.leader_id
            )
            return lambda: metrics.add_reader(reader)

        metrics.add_later(load)

    def channel(self, timeout_ms: int) -> NodeControllerChannel:
        return self._remote_channel(timeout_ms)

    def _remote_channel(self, timeout_ms: int) -> RemoteControllerChannel:
        channel = RemoteControllerChannel(
            self._peers,
            self._metadata,
            voters=self._config.voters,
            leader_id=lambda: self._observer.leader_id,
            silent=self._silent,
            times=self._config.quorum_times,
            timeout_ms=timeout_ms,
            name=f"{self._config.node_id}-{self._started_ms}-{len(self._channels)}",
            no_quorum=self._observer.no_quorum,
        )
        self._channels.append(channel)
        return channel

    async def describe_quorum(self, request: DescribeQuorumRequest, _context: RequestContext) -> DescribeQuorumResponse:
        if self._quorum_questions is None:
            self._quorum_questions = self._remote_channel(QUORUM_ANSWER_TIMEOUT_MS)
        return await self._quorum_questions.describe_quorum(request)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._voter_access.close()
        for channel in self._channels:
            await channel.close()
        self._observer.close()

    async def _follow(self) -> None:
        try:
            await self._observer.run()
        except (ConsensusFailed, UnknownRecord, ReplayError) as error:
            self._runtime.fail(f"The metadata cannot be followed any more: {error}")
        except OSError as error:
            self._runtime.fail(f"The metadata log in {self._config.metadata_log_dir} cannot be written: {error}.")
        except Exception:
            logger.exception("Task failed: task=metadata")
            self._runtime.fail("Following the metadata ended by an unexpected error, see the log.")
