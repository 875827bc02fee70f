"""A node that votes: the controller is in this process."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from ...protocol.errors import ConfigError, KafkaError
from ...protocol.ids import NodeId
from ...protocol.structs import replace
from ...quorum.controller.controller import Controller
from ...quorum.controller.periodic_decisions import PeriodicDecisions
from ...quorum.decisions.bootstrap import bootstrap_records
from ...quorum.decisions.context import ControllerConfig, Decision
from ...quorum.decisions.periodic_elections import balance_leaders, elect_where_unclean
from ...quorum.decisions.token_expiry import remove_expired_tokens
from ...quorum.fencing.broker_outages import BrokerOutages
from ...quorum.fencing.fast_fencing import FastFencing
from ...quorum.links.rules.peer_proof import PeerHello
from ...quorum.metadata.publishers import Publishers
from ...quorum.permissions.requester import Requester
from ...quorum.raft.consensus import ConsensusFailed, NotLeader, TransferFailed
from ...quorum.raft.operations import Operation, Outcome
from ...quorum.voter.snapshots import Snapshots
from ...quorum.voter.voter import RaftVoter
from ...storage.disk.files import Files
from ..apis.quorum_operations import QuorumOperator
from ..cluster.controller_channel import LocalControllerChannel, NodeControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..cluster.quorum_link import QUORUM_ANSWER_TIMEOUT_MS
from ..cluster.rules.quorum_view import QuorumView
from ..cluster.rules.voter_choice import SilentVoters
from ..cluster.tls_contexts import TlsContexts
from ..cluster.voter_access import VoterAccess
from ..configuration.node_config import DEFAULTS, NodeConfig
from ..configuration.topic_configs import ConfigResolver
from ..metrics.metrics import Metrics
from ..network.request import RequestContext
from ..quotas.client_quotas import ClientQuotas
from ..security.rules.credential_records import credential_records
from ..security.rules.sasl_mechanisms import SaslMechanisms
from ..timing.runtime import Runtime

if TYPE_CHECKING:
    from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
    from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse

    from ...quorum.controller.broker_probes import BrokerProbes
    from ...quorum.links.stream_links import StreamLinks
    from ..cluster.peers import PeerConnector
    from ..cluster.remote_controller_channel import RemoteControllerChannel
    from ..network.handlers import Handlers
    from .controller_listener import ControllerListener

logger = logging.getLogger(__name__)

REGISTRATION_TIMEOUT_MS = 30_000
"""For one attempt of a controller to tell the active one of itself; there is always another."""


class VoterLink:
    """See `quorum_link.QuorumLink`."""

    def __init__(
        self,
        config: NodeConfig,
        files: Files,
        publishers: Publishers,
        metadata: MetadataCache,
        configs: ConfigResolver,
        *,
        folder: str,
        directory_id: Callable[[], UUID],
        hello: Callable[[], PeerHello],
        tls: TlsContexts,
        sasl: SaslMechanisms,
        quotas: ClientQuotas,
        on_closed_by_peer: Callable[[NodeId], None],
        runtime: Runtime,
    ) -> None:
        """`folder` is that of the metadata log, `directory_id` of the directory that it is in.

        `on_closed_by_peer` is called with the node whose side closed a link of the quorum or a connection.
        """
        self._config = config
        self._files = files
        self._publishers = publishers
        self._metadata = metadata
        self._configs = configs
        self._folder = folder
        self._directory_id = directory_id
        self._hello = hello
        self._tls = tls
        self._sasl = sasl
        self._quotas = quotas
        self._on_closed_by_peer = on_closed_by_peer
        self._runtime = runtime
        self._voter: RaftVoter | None = None
        self._controller: Controller | None = None
        # Names of its changes are not those of an earlier run.
        self._started_ms = runtime.wall_clock_ms()
        self._channels: list[RemoteControllerChannel] = []
        # Of its own: heartbeats wait in theirs while there is no controller.
        self._quorum_questions: RemoteControllerChannel | None = None
        self._silent = SilentVoters(config.quorum_times.request_timeout_ms)
        self._view: QuorumView | None = None
        self._listener: ControllerListener | None = None
        self._duties: list[asyncio.Task[None]] = []
        self._probes: BrokerProbes | None = None
        self._voter_access: VoterAccess | None = None

    @property
    def voter_access(self) -> VoterAccess:
        if self._voter_access is None:
            self._voter_access = VoterAccess(
                None if self._is_alone else self._peers(),
                self._config.voters,
                node_id=self._config.node_id,
                now_ms=self._runtime.monotonic_ms,
                own=self._operate,
                unreached=lambda: None if self._voter is None else self._voter.status().unreached_ids,
            )
        return self._voter_access

    async def _operate(self, operation: Operation, requester: Requester | None) -> Outcome:
        assert self._voter is not None, "the controller has been started"
        snapshots = Snapshots(self._files, self._folder)
        operator = QuorumOperator(self._voter, self.controller, snapshots, self._config.authorizer)
        return await operator.execute(operation, requester)

    @property
    def controller(self) -> Controller:
        assert self._controller is not None, "the controller has not been started"
        return self._controller

    @property
    def leader_id(self) -> NodeId | None:
        return None if self._voter is None else self._voter.leader_id

    @property
    def handlers(self) -> Handlers | None:
        return None if self._listener is None else self._listener.handlers

    async def find_cluster_id(self) -> str | None:
        if self._is_alone:
            return None
        raise ConfigError(
            "cluster.id must be set to start a new cluster of several controllers: to the same for all of them, 22 "
            "letters as Apache Kafka's tools draw them."
        )

    async def start(self, cluster_id: str) -> Mapping[str, int]:
        config = self._config
        links = None if self._is_alone else self._stream_links(cluster_id)
        voter = self._voter = RaftVoter(
            self._files,
            self._folder,
            node_id=config.node_id,
            directory_id=self._directory_id(),
            random=self._runtime.random,
            loop=self._runtime.loop,
            wall_clock_ms=self._runtime.wall_clock_ms,
            voter_ids=tuple(sorted(config.voters)),
            links=links,
        )
        controller = self._controller = Controller(
            voter,
            self._publishers,
            config=_controller_config(config),
            bootstrap=bootstrap_records(
                cluster_id,
                min_insync_replicas=config.min_insync_replicas,
                credentials=credential_records(config.initial_credentials, self._runtime.random),
            ),
            random=self._runtime.random,
            loop=self._runtime.loop,
            wall_clock_ms=self._runtime.wall_clock_ms,
            on_failure=self._runtime.fail,
            find_quota=self._quotas.find_mutations,
        )
        if not self._is_alone:
            outages = BrokerOutages(is_active=lambda: controller.is_active, now_ms=self._runtime.monotonic_ms)
            self._publishers.add(outages)
        probes = self._probes = self._watch_brokers(controller)
        self._view = QuorumView(
            node_id=config.node_id,
            status=voter.status,
            observers=lambda: controller.observers(config.voters),
            voters=config.voters,
            listener_name=config.controller_listeners[0].name if config.controller_listeners else "",
            wall_clock_ms=self._runtime.wall_clock_ms,
        )
        ports: Mapping[str, int] = {}
        if config.controller_listeners:
            # A node that is reached by no other starts faster without all that.
            from .controller_listener import ControllerListener

            self._listener = ControllerListener(
                config,
                voter,
                controller,
                self._metadata,
                self._configs,
                Snapshots(self._files, self._folder),
                self._view,
                hello=self._hello,
                tls=self._tls,
                sasl=self._sasl,
                quotas=self._quotas,
                links=links,
                loop=self._runtime.loop,
                wall_clock_ms=self._runtime.wall_clock_ms,
                on_closed_by_peer=self._on_closed_by_peer,
                on_heartbeats_closed=(lambda _: None) if probes is None else probes.on_connection_closed,
            )
            ports = await self._listener.bind()
            await self._listener.start()
        await controller.start()
        if self._is_alone:
            await controller.wait_active()
        found = controller.image.cluster_id
        if found not in (None, cluster_id):
            raise ConfigError(
                f"The metadata in {config.metadata_log_dir} is of cluster {found}, but the log directories belong to "
                f"cluster {cluster_id}."
            )
        upkeep = PeriodicDecisions(controller, _intervals_ms(config))
        self._begin("sessions of brokers", controller.watch_sessions)
        self._begin("periodic decisions", upkeep.run)
        if config.controller_listeners:
            self._begin("registration of the controller", lambda: self._register(ports))
        return ports

    def _watch_brokers(self, controller: Controller) -> BrokerProbes | None:
        config = self._config
        if not config.broker_fast_fencing_enable or not config.controller_listeners:
            return None
        from ...quorum.controller.broker_probes import BrokerProbes

        rules = FastFencing(
            node_id=config.node_id,
            listener_name=config.inter_broker_listener_name,
            session_timeout_ms=config.broker_session_timeout_ms,
        )
        probes = BrokerProbes(controller, rules, loop=self._runtime.loop)
        controller.watch(probes)
        return probes

    @property
    def _is_alone(self) -> bool:
        return len(self._config.voters) == 1

    def _stream_links(self, cluster_id: str) -> StreamLinks:
        from ...quorum.links.stream_links import StreamLinks

        config = self._config
        addresses = {
            voter.id: (voter.host, voter.port) for voter in config.voters.values() if voter.id != config.node_id
        }
        return StreamLinks(
            addresses,
            hello=lambda: replace(self._hello(), cluster_id=cluster_id),
            secret=config.cluster_secret,
            certificates=config.node_certificates,
            tls=self._tls.client(config.controller_listener_name),
            loop=self._runtime.loop,
            on_closed_by_peer=self._on_closed_by_peer,
        )

    def add_metrics(self, metrics: Metrics) -> None:
        assert self._voter is not None, "the controller has been started"
        voter = self._voter

        def load() -> Callable[[], None]:
            from ..metrics.quorum_reader import ControllerReader, ControllerView

            view = ControllerView(
                controller=self.controller,
                voter=voter,
                voter_ids=tuple(sorted(self._config.voters)),
                fast_fencing=None if self._probes is None else self._probes.rules,
            )
            reader = ControllerReader(view, metrics.watch, self._runtime.wall_clock_ms)
            return lambda: metrics.add_reader(reader)

        metrics.add_later(load)
        if self._listener is not None:
            metrics.add_listeners(self._listener.listeners, self._listener.dispatcher, self._listener.requests)

    def channel(self, timeout_ms: int) -> NodeControllerChannel:
        return LocalControllerChannel(self.controller) if self._is_alone else self._remote_channel(timeout_ms)

    def _remote_channel(self, timeout_ms: int) -> RemoteControllerChannel:
        from ..cluster.remote_controller_channel import RemoteControllerChannel

        assert self._voter is not None, "the controller has not been started"
        voter, config = self._voter, self._config
        channel = RemoteControllerChannel(
            self._peers(),
            self._metadata,
            voters=config.voters,
            leader_id=lambda: voter.leader_id,
            silent=self._silent,
            times=config.quorum_times,
            own_controller=self.controller,
            timeout_ms=timeout_ms,
            name=f"{self._config.node_id}-{self._started_ms}-{len(self._channels)}",
            no_quorum=self._no_quorum,
        )
        self._channels.append(channel)
        return channel

    def _peers(self) -> PeerConnector:
        from ..cluster.peers import PeerConnector

        return PeerConnector(
            secret=self._config.cluster_secret,
            hello=self._hello,
            certificates=self._config.node_certificates,
            tls=self._tls.client(self._config.controller_listener_name),
        )

    async def describe_quorum(self, request: DescribeQuorumRequest, _context: RequestContext) -> DescribeQuorumResponse:
        from ..apis.describe_quorum import describe

        assert self._view is not None, "the controller has not been started"
        if self._is_alone or self.controller.is_active or self._no_quorum() is not None:
            return describe(self._view, request)
        if self._quorum_questions is None:
            self._quorum_questions = self._remote_channel(QUORUM_ANSWER_TIMEOUT_MS)
        try:
            return await self._quorum_questions.describe_quorum(request)
        except KafkaError:
            assert self._voter is not None, "the controller has not been started"
            if self._voter.leader_id is not None and self._no_quorum() is None:
                raise
            return describe(self._view, request)

    def _no_quorum(self) -> str | None:
        return None if self._view is None else self._view.no_quorum()

    async def stop(self) -> None:
        await self._transfer_leadership()
        for duty in self._duties:
            duty.cancel()
        if self._duties:
            await asyncio.wait(self._duties)
        if self._voter_access is not None:
            await self._voter_access.close()
        for channel in self._channels:
            await channel.close()
        if self._probes is not None:
            await self._probes.stop()
        if self._listener is not None:
            await self._listener.stop()
        if self._controller is not None:
            await self._controller.stop()

    async def _register(self, ports: Mapping[str, int]) -> None:
        from .controller_registration import register_controller

        # Advertises for its first listener the address in `controller.quorum.voters`, where other nodes reach it.
        (listener, *_), voter = self._config.controller_listeners, self._config.voters[self._config.node_id]
        advertised = replace(
            listener,
            host=voter.host or listener.host or socket.gethostname(),
            port=voter.port or listener.port or ports[listener.name],
        )
        await register_controller(
            self.channel(REGISTRATION_TIMEOUT_MS),
            node_id=self._config.node_id,
            incarnation_id=UUID(int=self._runtime.random.getrandbits(128), version=4),
            listeners=(advertised,),
        )

    async def _transfer_leadership(self) -> None:
        """Leadership transfer before this voter stops: no voter waits for an election timeout."""
        voter = self._voter
        if voter is None or self._is_alone or voter.leader_id != self._config.node_id:
            return
        try:
            leader_id = await voter.transfer_leadership(None)
        except (NotLeader, TransferFailed, ConsensusFailed) as error:
            logger.info("Quorum leadership not transferred: reason=%s", error)
        else:
            logger.info("Quorum leadership transferred: leader=%d", leader_id)

    def _begin(self, name: str, duty: Callable[[], Awaitable[None]]) -> None:
        """Does something beside the requests for as long as this controller runs."""
        self._duties.append(self._runtime.loop.create_task(self._run_task(name, duty)))

    async def _run_task(self, name: str, duty: Callable[[], Awaitable[None]]) -> None:
        try:
            await duty()
        except Exception:
            logger.exception("Task failed: task=%s", name)
            self._runtime.fail(f"The controller's task '{name}' ended by an unexpected error, see the log.")


def _intervals_ms(config: NodeConfig) -> Mapping[Decision[None, bool], int]:
    """How often the active controller decides what."""
    intervals: dict[Decision[None, bool], int] = {elect_where_unclean: config.unclean_leader_election_interval_ms}
    if config.auto_leader_rebalance_enable:
        intervals[balance_leaders] = config.leader_imbalance_check_interval_ms
    if config.delegation_tokens is not None:
        intervals[remove_expired_tokens] = config.delegation_tokens.check_interval_ms
    return intervals


def _controller_config(config: NodeConfig) -> ControllerConfig:
    return ControllerConfig(
        node_id=config.node_id,
        voter_ids=tuple(sorted(config.voters)),
        properties=config.properties,
        own_defaults=DEFAULTS,
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        is_replication_factor_capped=config.is_replication_factor_capped,
        min_insync_replicas=config.min_insync_replicas,
        unclean_leader_election_enable=config.unclean_leader_election_enable,
        broker_session_timeout_ms=config.broker_session_timeout_ms,
        snapshot_bytes=config.metadata_log_max_record_bytes_between_snapshots,
        snapshot_interval_ms=config.metadata_log_max_snapshot_interval_ms,
        authorizer=config.authorizer,
        delegation_tokens=config.delegation_tokens,
    )
