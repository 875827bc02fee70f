"""One node, started and stopped in order. Kafka: `BrokerServer`, `ControllerServer`, `SharedServer`.

Start: lock the disks → learn which cluster this is, and format what is empty → take part in the quorum, or follow it →
bind → register as a broker → load the logs → tell the parts that follow the metadata → be let in and accept
connections.

Stop: hand leaderships over → accept nothing more → answer what has begun → carry out no change of the metadata any
more → sync and close the logs, whose mark of a clean stop is the last thing written about them → leave the quorum →
unlock the disks: then nothing is left that writes.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

from ...protocol.errors import ConfigError, KafkaError
from ...quorum.links.rules.peer_proof import NONCE_BYTES, PeerHello
from ...quorum.metadata.incarnations import incarnation_id_of
from ...quorum.metadata.metadata_log import METADATA_FOLDER
from ...quorum.metadata.publishers import MetadataPublisher, Publishers
from ...quorum.raft.consensus import ConsensusFailed
from ...storage.directories.log_directories import LogDirectories
from ...storage.directories.log_manager import LogManager
from ...storage.disk.files import Files
from ...storage.tiers.rules.tier_store import OpenTier
from ..cluster.event_stream import EventStream
from ..cluster.metadata_cache import MetadataCache
from ..cluster.quorum_link import QuorumLink
from ..cluster.rules.recent_departures import RecentDepartures
from ..cluster.rules.suspicions import Suspicions
from ..cluster.suspected_peers import SuspectedPeers
from ..cluster.tls_contexts import TlsContexts
from ..configuration.node_config import REQUEST_TIMEOUT_MS, NodeConfig
from ..configuration.topic_configs import ConfigResolver
from ..metrics.metrics import Metrics
from ..network.handlers import Intercept
from ..quotas.client_quotas import ClientQuotas
from ..security.http_identities import HttpIdentities
from ..security.rules.sasl_mechanisms import SaslMechanisms
from ..security.wiring import authorizer_of, identities_of
from ..timing.runtime import Runtime
from .background_tasks import BackgroundTasks
from .broker_stop import stop_broker
from .feature_guard import FeatureGuard
from .lifecycle import BrokerLifecycle
from .log_loading import load_logs
from .steady_clock import SteadyClock
from .wiring import BrokerParts, wire_broker

if TYPE_CHECKING:
    from ..admin.node_ports import RunningNode

logger = logging.getLogger(__name__)

LOAD_HANDLERS_AFTER_S = 1.0
"""Those that no client has asked for by then: the first clients are served first."""
ROOM_CHECK_S = 1.0
"""How long after a full disk has room again what it refused is tried again, but for appends: they try at once."""


class Node:
    """A whole node in one event loop. `failure` is done, with a sentence, when it cannot go on."""

    def __init__(
        self,
        config: NodeConfig,
        files: Files,
        *,
        loop: asyncio.AbstractEventLoop,
        wall_clock_ms: Callable[[], int],
        random: Random,
        random_bytes: Callable[[int], bytes] | None = None,
        followers: Sequence[MetadataPublisher] = (),
        intercept: Intercept | None = None,
        open_tier: OpenTier | None = None,
    ) -> None:
        """`random_bytes` is for secrets; without it `random` is. `followers` hear of the metadata behind the node's own
        parts. Requests to the broker's listeners go through `intercept`. `open_tier` opens tiered storage in place of
        what the URL says."""
        self.failure: asyncio.Future[str] = loop.create_future()
        self.bound_ports: Mapping[str, int] = {}
        """By listener name, once it has started."""
        self._config = config
        self._files = files
        self._loop = loop
        self._wall_clock_ms = wall_clock_ms
        self._steady_clock = SteadyClock(wall_clock_ms(), _milliseconds(loop.time()))
        self._runtime = Runtime(
            loop=loop,
            wall_clock_ms=wall_clock_ms,
            steady_clock_ms=self._steady_clock_ms,
            monotonic_ms=lambda: int(loop.time() * 1000),
            random=random,
            fail=self._fail,
        )
        self._random_bytes = random.randbytes if random_bytes is None else random_bytes
        self._configs = ConfigResolver(config)
        self._directories = LogDirectories(
            files,
            config.log_dirs,
            node_id=config.node_id,
            random=random,
            metadata_log_dir=config.metadata_log_dir,
            reserve_bytes=config.log_dir_reserve_bytes,
        )
        self._logs = LogManager(
            files,
            self._directories,
            random=random,
            steady_clock_ms=self._steady_clock_ms,
            default_config=self._configs.default_log_config,
            producer_id_expiration_ms=config.producer_id_expiration_ms,
            recovery_threads=config.num_recovery_threads_per_data_dir,
            on_directory_failure=self._on_directory_failure,
        )
        self._followers = followers
        self._intercept = intercept
        self._open_tier = open_tier
        self._metadata = MetadataCache(config.node_id)
        self._publishers = Publishers()
        self._publishers.add(self._metadata)
        self._suspected = SuspectedPeers(
            Suspicions(config.node_id, hold_ms=config.broker_suspicion_max_ms),
            self._metadata,
            listener_name=config.inter_broker_listener_name,
            loop=loop,
        )
        self._publishers.add(self._suspected)
        self._departures = RecentDepartures(self._runtime.monotonic_ms)
        self.events = EventStream(
            leader_id=lambda: None if self._quorum is None else self._quorum.leader_id, wall_clock_ms=wall_clock_ms
        )
        self._publishers.add(self.events)
        self._publishers.add(FeatureGuard(self._fail))
        self._quotas = ClientQuotas(
            sample_count=config.quotas.quota_window_num,
            window_ms=1000 * config.quotas.quota_window_size_seconds,
            mutation_sample_count=config.quotas.controller_quota_window_num,
            mutation_window_ms=1000 * config.quotas.controller_quota_window_size_seconds,
            time_s=loop.time,
        )
        self._publishers.add(self._quotas)
        if not config.is_broker:
            # A broker's follow behind its registration.
            self._publishers.add(self._configs)
        self.tls: TlsContexts | None = None
        """Once it has begun to start."""
        self.identities: HttpIdentities | None = None
        """Of clients of HTTP, once it has begun to start."""
        self.authorizer = authorizer_of(config, self._metadata, loop)
        """For clients of HTTP; None where everyone may do everything."""
        self._cluster_id: str | None = None
        self._quorum: QuorumLink | None = None
        self._parts: BrokerParts | None = None
        self._make_running: Callable[[], RunningNode] | None = None
        self._running: RunningNode | None = None
        self._phase = "It has just begun."
        self._is_stopping = False
        self._tasks = BackgroundTasks(loop, self._fail)
        self.metrics = Metrics(loop, config.node_id)

    @property
    def metadata(self) -> MetadataCache:
        return self._metadata

    @property
    def running(self) -> RunningNode | None:
        """What operators ask of the node; None before it has started, and once it stops."""
        if self._running is None and self._make_running is not None:
            self._running = self._make_running()
        return self._running

    @property
    def phase(self) -> str:
        """What the node does before it runs, or waits for: a sentence."""
        return self._phase

    @property
    def is_stopping(self) -> bool:
        """Whether it has begun to stop, from a start that is not over, too."""
        return self._is_stopping

    @property
    def quorum(self) -> QuorumLink | None:
        """None before it takes part in one."""
        return self._quorum

    @property
    def config(self) -> NodeConfig:
        return self._config

    @property
    def directories(self) -> LogDirectories:
        return self._directories

    @property
    def has_parts(self) -> bool:
        return self._parts is not None

    @property
    def parts(self) -> BrokerParts:
        assert self._parts is not None, "the node is no broker, or has not been started"
        return self._parts

    async def start(self) -> None:
        """Raises ConfigError, one sentence, when the node cannot be what its configuration says, or fails meanwhile."""
        starting = self._loop.create_task(self._start())
        try:
            await asyncio.wait((starting, self.failure), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not starting.done():
                self._begin_stop()
                starting.cancel()
                await asyncio.wait((starting,))
        if starting.cancelled():
            raise ConfigError(f"Node {self._config.node_id} cannot start: {self.failure.result()}")
        starting.result()

    async def _start(self) -> None:
        started_s = self._loop.time()
        try:
            tls = self.tls = TlsContexts(self._config.tls, self._files, self._loop)
            if self._config.tls:
                self._tasks.start("watch of certificates", tls.watch())
                self.metrics.add_later(lambda: self._load_certificate_metrics(tls))
            sasl = await self._make_sasl()
            known = self._directories.lock()
            self._phase = "It takes part in the metadata quorum once a majority of the voters answers."
            quorum = self._quorum = self._join_quorum(tls, sasl)
            self._cluster_id = self._directories.format(
                self._config.cluster_id or known or await quorum.find_cluster_id()
            )
            self.bound_ports = await quorum.start(self._cluster_id)
            quorum.add_metrics(self.metrics)
            self.metrics.add_later(self._load_quota_metrics)
            if self._config.is_broker:
                await self._start_broker(quorum, self._cluster_id, tls, sasl)
                self._make_running = lambda: self._running_broker(quorum)
            else:
                self._make_running = lambda: self._running_controller(quorum, tls)
        except BaseException as error:
            await self._abandon()
            if isinstance(error, ConsensusFailed | KafkaError | OSError):
                raise ConfigError(f"Node {self._config.node_id} cannot start: {error}") from error
            raise
        logger.info(
            "Penstock started: node_id=%d cluster_id=%s listeners=%s admin=%s milliseconds=%d",
            self._config.node_id,
            self._cluster_id,
            ",".join(f"{name}:{port}" for name, port in self.bound_ports.items()),
            ",".join(map(str, self._config.admin_advertised_listeners)),
            (self._loop.time() - started_s) * 1000,
        )
        self._tasks.start("cluster events", self.events.load(self._loop))
        self._tasks.start("loading of handlers", self._load_handlers(quorum))

    async def _load_handlers(self, quorum: QuorumLink) -> None:
        await asyncio.sleep(LOAD_HANDLERS_AFTER_S)
        for handlers in (None if self._parts is None else self._parts.handlers, quorum.handlers):
            if handlers is not None:
                await handlers.load_all(lambda load: self._loop.run_in_executor(None, load))

    async def stop(self) -> None:
        """Everything acknowledged is on disk, and the mark of a clean stop written, when this returns."""
        running, self._running, self._make_running = self._running, None, None
        self._begin_stop()
        self.metrics.stop()
        await self._tasks.stop()
        self.events.close()
        if self.identities is not None:
            self.identities.close()
        if self._parts is not None:
            await stop_broker(self._parts, self._logs, self._publishers, self._suspected, self._loop)
        elif running is not None:
            # A controller's connections to brokers, which its HTTP administration asks.
            await running.peers.close()
        if self._quorum is not None:
            await self._quorum.stop()
        self._directories.unlock()
        logger.info("Penstock stopped: node_id=%d", self._config.node_id)

    def _begin_stop(self) -> None:
        self._is_stopping = True
        self._phase = "It stops."

    def _join_quorum(self, tls: TlsContexts, sasl: SaslMechanisms) -> QuorumLink:
        folder = f"{self._config.metadata_log_dir}/{METADATA_FOLDER}"
        if self._config.is_controller:
            from .voter_link import VoterLink

            return VoterLink(
                self._config,
                self._files,
                self._publishers,
                self._metadata,
                self._configs,
                folder=folder,
                directory_id=lambda: self._directories.metadata_directory_id,
                hello=self._hello,
                tls=tls,
                sasl=sasl,
                quotas=self._quotas,
                on_closed_by_peer=self._suspected.on_closed,
                runtime=self._runtime,
            )
        from .observer_link import ObserverLink

        return ObserverLink(
            self._config,
            self._files,
            self._publishers,
            self._metadata,
            folder=folder,
            hello=self._hello,
            tls=tls,
            runtime=self._runtime,
        )

    async def _make_sasl(self) -> SaslMechanisms:
        """Raises ConfigError."""
        found = identities_of(
            self._config, self._files, self._metadata, self._random_bytes, self._wall_clock_ms, self._loop
        )
        self.identities = found.http
        self._configs.on_change(lambda _old, new: found.mechanisms.change(new.sasl))
        if found.key_sets is not None:
            await found.key_sets.load()
            self._tasks.start("keys of tokens", found.key_sets.watch())
        return found.mechanisms

    def _hello(self) -> PeerHello:
        return PeerHello(
            node_id=self._config.node_id,
            directory_id=self._directories.metadata_directory_id,
            cluster_id=self._cluster_id,
            nonce=self._random_bytes(NONCE_BYTES),
        )

    async def _start_broker(self, quorum: QuorumLink, cluster_id: str, tls: TlsContexts, sasl: SaslMechanisms) -> None:
        config = self._config
        previous_broker_epoch = self._directories.previous_broker_epoch()
        lifecycle = BrokerLifecycle(
            # A channel of its own, which no client's request holds up.
            quorum.channel(config.initial_broker_registration_timeout_ms),
            self._metadata,
            node_id=config.node_id,
            rack=config.broker_rack,
            incarnation_id=incarnation_id_of(self._directories.count_start(), self._runtime.random.getrandbits(128)),
            directories=[directory.id for directory in self._directories.online],
            cordoned_directories=lambda: [one.id for one in self._directories if one.is_cordoned],
            heartbeat_interval_ms=config.broker_heartbeat_interval_ms,
            on_replaced=self._on_replaced,
        )
        parts = self._parts = wire_broker(
            config,
            self._files,
            self._logs,
            self._configs,
            self._metadata,
            lifecycle,
            controller=quorum.channel(REQUEST_TIMEOUT_MS),
            isr_changes=quorum.channel(REQUEST_TIMEOUT_MS),
            assignments=quorum.channel(REQUEST_TIMEOUT_MS),
            describe_quorum=quorum.describe_quorum,
            hello=self._hello,
            tls=tls,
            sasl=sasl,
            quotas=self._quotas,
            intercept=self._intercept,
            open_tier=self._open_tier,
            suspected=self._suspected,
            departures=self._departures,
            runtime=self._runtime,
        )
        self.metrics.add_listeners(parts.listeners, parts.dispatcher, parts.requests)
        self.metrics.watch.on_sample(lambda _elapsed_s, now_ms: parts.flush_times.rotate(now_ms))
        verification_times = parts.data_path.verifier.times
        self.metrics.watch.on_sample(lambda _elapsed_s, now_ms: verification_times.rotate(now_ms))
        self.metrics.add_later(lambda: self._load_broker_metrics(parts))
        self._publishers.add(lifecycle)
        bound = await parts.listeners.bind(config.listeners, backlog=config.socket_listen_backlog_size)
        self.bound_ports = {**self.bound_ports, **bound}
        self._phase = "It waits for the active controller to register it as a broker."
        advertised = config.advertise(socket.gethostname(), bound)
        await lifecycle.register(
            advertised,
            cluster_id=cluster_id,
            previous_broker_epoch=previous_broker_epoch,
            timeout_ms=config.initial_broker_registration_timeout_ms,
        )
        self._phase = "It loads its logs."
        await load_logs(
            config,
            parts,
            self._logs,
            self._directories,
            self._publishers,
            self._metadata.image,
            self._followers,
            self._loop,
        )
        self._phase = "It waits for the active controller to unfence it."
        await lifecycle.unfence()
        # Not before: who left while it read what had been committed left long ago.
        self._publishers.add(self._departures)
        await parts.partitions.settled()
        self._tasks.start("heartbeats", lifecycle.keep_alive())
        self._tasks.start("watch over followers", parts.partitions.watch_followers())
        self._tasks.start("directories of replicas", parts.directories.run())
        self._tasks.start("housekeeping of logs", parts.housekeeping.run())
        self._tasks.start("compaction of logs", parts.cleaner.run())
        self._tasks.start("moves between log directories", parts.mover.run())
        self._tasks.start("scrubbing of logs", parts.scrubber.run())
        if parts.tier is not None:
            self._tasks.start("tiered storage", parts.tier.manager.run())
        self._tasks.start("waiting for room", self._wait_for_room(parts))
        # Accept in the loop turn in which this broker is unfenced: a client that connects is served, and Metadata names
        # a broker that can be used.
        await parts.listeners.start()
        if self._metadata.image.configs.is_drained_until_restart(config.node_id):
            from .drain_end import end_drain

            ending = end_drain(self._metadata, quorum.channel(REQUEST_TIMEOUT_MS), config.node_id)
            self._tasks.start("end of the drain", ending)

    def _load_certificate_metrics(self, tls: TlsContexts) -> Callable[[], None]:
        from ..metrics.process_reader import CertificateReader

        return lambda: self.metrics.add_reader(CertificateReader(tls.expiries))

    def _load_quota_metrics(self) -> Callable[[], None]:
        from ..metrics.rules.quota_reader import QuotaReader

        return lambda: self.metrics.add_reader(QuotaReader(self._quotas.sensors, self._runtime.monotonic_ms))

    def _load_broker_metrics(self, parts: BrokerParts) -> Callable[[], None]:
        from .broker_metrics import add_broker_metrics

        return lambda: add_broker_metrics(
            self.metrics,
            parts,
            self._metadata,
            self._directories,
            self._files,
            self._runtime,
            transaction_max_timeout_ms=self._config.transactions.transaction_max_timeout_ms,
        )

    def _running_broker(self, quorum: QuorumLink) -> RunningNode:
        from .running_node import running_broker

        return running_broker(self.parts, quorum, self._loop)

    def _running_controller(self, quorum: QuorumLink, tls: TlsContexts) -> RunningNode:
        from .running_node import running_controller

        return running_controller(self._config, self._metadata, self._configs, quorum, self._hello, tls, self._loop)

    def _steady_clock_ms(self) -> int:
        clock = self._steady_clock
        was_trusted = clock.is_wall_clock_trusted
        wall_ms = self._wall_clock_ms()
        now_ms = clock.now_ms(wall_ms, _milliseconds(self._loop.time()))
        if clock.is_wall_clock_trusted is not was_trusted:
            logger.warning("Wall clock %s: ahead_ms=%d", "jumped" if was_trusted else "believed", wall_ms - now_ms)
        return now_ms

    async def _wait_for_room(self, parts: BrokerParts) -> None:
        while True:
            await asyncio.sleep(ROOM_CHECK_S)
            await self._logs.open_postponed(self._loop)
            parts.partitions.retry_offline_partitions()

    async def _abandon(self) -> None:
        """Lets go of what a start that failed has got so far."""
        await self._tasks.stop()
        if self._parts is not None:
            self._parts.listeners.close()
            await self._parts.alter_partitions.stop()
            await self._parts.partitions.stop()
        if self._quorum is not None:
            await self._quorum.stop()
        self._directories.unlock()

    def _fail(self, sentence: str) -> None:
        if not self.failure.done():
            self.failure.set_result(sentence)

    def _on_replaced(self, sentence: str) -> None:
        # What is said to that broker from now on is not said to this process.
        self._publishers.close()
        self._fail(sentence)

    def _on_directory_failure(self, path: str, error: OSError) -> None:
        if self._parts is not None:
            self._parts.partitions.on_directory_failure(path)
            directory = self._directories.directory_of(path)
            assert directory is not None, "only a log directory of this node fails"
            self._parts.lifecycle.report_failed_directory(directory.id)
        if not self._directories.online:
            self._fail(f"No log directory is left; {path}: {error}.")


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
