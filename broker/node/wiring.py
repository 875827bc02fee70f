"""The parts of a node that serves clients, made and joined; nothing here touches a disk or a socket yet."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from msgspec import Struct

from ...quorum.links.rules.peer_proof import PeerHello
from ...storage.compaction.compactor import ExecutorCompactor
from ...storage.directories.flusher import Flusher
from ...storage.directories.log_cleaner import LogCleaner, LogCleanerConfig
from ...storage.directories.log_copier import LogCopier
from ...storage.directories.log_housekeeping import HousekeepingConfig, LogHousekeeping
from ...storage.directories.log_manager import LogManager
from ...storage.directories.log_mover import LogMover
from ...storage.directories.log_scrubber import LogScrubber, LogScrubberConfig
from ...storage.directories.rules.checkpoints import HIGH_WATERMARKS
from ...storage.disk.files import DiskFiles, Files
from ...storage.log.log import Log
from ...storage.scrubbing.scrubber import ExecutorScrubber
from ...storage.tiers.rules.tier_store import OpenTier
from ...storage.workers.worker_process import ProcessCompactor, ProcessScrubber, WorkerProcesses
from ..cluster.controller_channel import ControllerChannel, NodeControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..cluster.peer_channel import PeerChannel
from ..cluster.producer_ids import ProducerIds, allocate_producer_ids
from ..cluster.rules.recent_departures import RecentDepartures
from ..cluster.suspected_peers import SuspectedPeers
from ..cluster.tls_contexts import TlsContexts
from ..configuration.node_config import NodeConfig
from ..configuration.topic_configs import ConfigResolver
from ..coordinators.group_coordinator import GroupCoordinator
from ..coordinators.transaction_coordinator import TransactionCoordinator
from ..coordinators.transaction_verifier import VerificationConfig
from ..network.connection_host import NEVER_MS, ConnectionHost
from ..network.dispatch import Dispatcher
from ..network.handlers import Handlers, Intercept
from ..network.listeners import Listeners
from ..network.peer_log import PeerLog
from ..network.request import Authorizer, Request, RequestContext
from ..network.rules.connection_limits import ConnectionLimits
from ..network.rules.connection_rates import ConnectionRates
from ..network.rules.request_memory import RequestMemory
from ..network.rules.request_statistics import RequestStatistics
from ..quotas.client_quotas import ClientQuotas
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from ..replication.alter_partition_manager import AlterPartitionManager
from ..replication.replica_fetcher_manager import ReplicaFetcherManager, ReplicationConfig
from ..replication.rules.fetcher_config import FetcherConfig
from ..replication.rules.replication_throttles import ReplicationThrottles
from ..security.rules.sasl_mechanisms import SaslMechanisms
from ..security.wiring import authorizer_of
from ..telemetry.client_telemetry import ClientTelemetry
from ..timing.rules.duration_histogram import NS_PER_S, DurationHistogram
from ..timing.runtime import Runtime
from .assignments_manager import AssignmentsManager
from .data_path import DataPath, DataPathConfig, wire_data_path
from .handlers.dependencies import HandlerDependencies
from .handlers.table import register_handlers
from .lifecycle import BrokerLifecycle
from .moved_replicas import MovedReplicas

if TYPE_CHECKING:
    from ..apis.describe_quorum import DescribeQuorum
    from ..cluster.peers import PeerConnector
    from .tier_wiring import TierParts

MOVE_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"


class BrokerParts(Struct, frozen=True, kw_only=True):
    """In the order in which they are started."""

    lifecycle: BrokerLifecycle
    controller: NodeControllerChannel
    """By which what clients ask of a controller goes."""
    configs: ConfigResolver
    throttles: ReplicationThrottles
    data_path: DataPath
    flusher: Flusher
    flush_times: DurationHistogram
    fetchers: ReplicaFetcherManager
    alter_partitions: AlterPartitionManager
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    telemetry: ClientTelemetry
    tier: TierParts | None
    directories: AssignmentsManager
    housekeeping: LogHousekeeping
    cleaner: LogCleaner
    mover: LogMover
    scrubber: LogScrubber
    peer_channels: Sequence[PeerChannel]
    admin_channel: PeerChannel
    """One of them: what operators ask of other brokers by way of this one."""
    handlers: Handlers
    authorizer: Authorizer | None
    dispatcher: Dispatcher
    requests: RequestStatistics
    listeners: Listeners

    @property
    def partitions(self) -> ReplicaManager:
        return self.data_path.partitions


def wire_broker(
    config: NodeConfig,
    files: Files,
    logs: LogManager,
    configs: ConfigResolver,
    metadata: MetadataCache,
    lifecycle: BrokerLifecycle,
    *,
    controller: NodeControllerChannel,
    isr_changes: ControllerChannel,
    assignments: ControllerChannel,
    describe_quorum: DescribeQuorum,
    hello: Callable[[], PeerHello],
    tls: TlsContexts,
    sasl: SaslMechanisms,
    quotas: ClientQuotas,
    intercept: Intercept | None,
    open_tier: OpenTier | None,
    suspected: SuspectedPeers,
    departures: RecentDepartures,
    runtime: Runtime,
) -> BrokerParts:
    """`isr_changes` and `assignments` (of replicas to log directories) are channels of their own, which no client's
    request holds up."""
    loop = runtime.loop
    flush_times = DurationHistogram()
    flusher = Flusher(loop, lambda seconds: flush_times.add(int(seconds * NS_PER_S)))
    throttles = ReplicationThrottles(
        node_id=config.node_id,
        in_effect=lambda: configs.in_effect,
        window_count=config.replication_quota_window_num,
        window_ms=1000 * config.replication_quota_window_size_seconds,
    )
    alter_partitions = AlterPartitionManager(
        isr_changes,
        node_id=config.node_id,
        broker_epoch=lambda: lifecycle.broker_epoch,
        loop=loop,
        on_failure=runtime.fail,
    )

    made_fetchers: list[ReplicaFetcherManager] = []

    def make_fetchers(partitions: ReplicaManager) -> ReplicaFetcherManager:
        fetchers = ReplicaFetcherManager(
            _replication_config(config),
            metadata,
            partitions,
            peers=lambda: peers_of(config, hello, tls),
            broker_epoch=lambda: lifecycle.broker_epoch,
            quota=throttles.follower,
            on_closed_by_peer=suspected.on_closed,
            runtime=runtime,
        )
        made_fetchers.append(fetchers)
        return fetchers

    # Partitions change once metadata are published to them: then all of the node is made.

    def on_internal_change(partition: Partition) -> None:
        groups.coordinators.on_leadership(partition)
        transactions.coordinators.on_leadership(partition)

    def on_damage(partition: Partition) -> None:
        directories.recheck_replica(partition)

    def on_scrubbed_damage(log: Log, offset: int) -> None:
        partition = partitions.find(log.topic, log.partition)
        if partition is not None and partition.log is log:
            partition.check(offset, 1)

    def directory_id_of(partition: Partition) -> UUID:
        directory = logs.directories.directory_of(partition.log.directory)
        assert directory is not None, "logs are in log directories"
        return mover.announced_directory((partition.topic, partition.index)) or directory.id

    def peer_channel() -> PeerChannel:
        return PeerChannel(
            metadata,
            lambda: peers_of(config, hello, tls),
            node_id=config.node_id,
            listener_name=config.inter_broker_listener_name,
            loop=loop,
        )

    peer_channels = [peer_channel(), peer_channel(), peer_channel()]
    marker_channel, verification_channel, admin_channel = peer_channels
    memory = RequestMemory(config.queued_max_request_bytes)
    requests = RequestStatistics()
    data_path = wire_data_path(
        _data_path_config(config),
        logs,
        flusher,
        alter_partitions,
        verification_channel,
        make_fetchers=make_fetchers,
        log_config=configs.log_config,
        high_watermarks={
            key: offset
            for directory in logs.directories.online
            for key, offset in directory.checkpointed[HIGH_WATERMARKS].items()
        },
        on_disk_error=logs.on_error,
        on_internal_change=on_internal_change,
        on_damage=on_damage,
        suspected=suspected.rules,
        verification=lambda: _verification_config(configs.node_config),
        leader_quota=throttles.leader,
        memory=memory,
        requests=requests,
        runtime=runtime,
        tier=lambda: None if tier is None else tier.reader,
    )
    partitions = data_path.partitions
    tier: TierParts | None = None
    if config.tier.is_enabled:
        # Only who has a tier loads it.
        from .tier_wiring import wire_tier

        tier_channel = peer_channel()
        peer_channels.append(tier_channel)
        tier = wire_tier(
            config, configs, metadata, partitions, controller, tier_channel, open_tier=open_tier, runtime=runtime
        )
    groups = GroupCoordinator(
        partitions,
        config.groups,
        lambda group_id: configs.group_settings(partitions.image, group_id),
        runtime=runtime,
    )
    producer_ids = ProducerIds(
        lambda: allocate_producer_ids(controller, node_id=config.node_id, broker_epoch=lifecycle.broker_epoch)
    )
    transactions = TransactionCoordinator(
        partitions,
        config.transactions,
        marker_channel,
        producer_ids.next_id,
        runtime=runtime,
    )
    directories = AssignmentsManager(
        partitions,
        assignments,
        node_id=config.node_id,
        broker_epoch=lambda: lifecycle.broker_epoch,
        directory_id_of=directory_id_of,
        is_online=lambda directory_id: any(one.id == directory_id for one in logs.directories.online),
    )
    housekeeping = LogHousekeeping(
        logs,
        flusher,
        files,
        loop,
        config=_housekeeping_config(config),
        steady_clock_ms=runtime.steady_clock_ms,
        high_watermark_of=lambda log: _high_watermark(partitions, log),
        on_deleted=lambda log: partitions.on_retention(log.topic, log.partition),
    )
    workers = WorkerProcesses(loop)
    # Another process sees the machine's disks only.
    has_workers = isinstance(files, DiskFiles)
    scrubber = LogScrubber(
        logs,
        loop,
        ProcessScrubber(workers) if has_workers else ExecutorScrubber(files, loop),
        config=LogScrubberConfig(
            log_scrub_interval_ms=config.log_scrub_interval_ms,
            log_scrub_io_max_bytes_per_second=config.log_scrub_io_max_bytes_per_second,
        ),
        on_damage=on_scrubbed_damage,
        on_repaired=lambda log: cleaner.retry(log),
    )
    cleaner = LogCleaner(
        logs,
        files,
        loop,
        ProcessCompactor(workers) if has_workers else ExecutorCompactor(files, loop),
        config=lambda: _cleaner_config(configs.node_config),
        steady_clock_ms=runtime.steady_clock_ms,
        stable_offset_of=lambda log: log.last_stable_offset(_high_watermark(partitions, log)),
        on_corrupt=scrubber.request,
    )
    moved = MovedReplicas(partitions, directories.recheck_replica, node_id=config.node_id)
    copier = LogCopier(
        logs,
        files,
        loop,
        check=moved.check,
        bytes_per_s=lambda: float(configs.in_effect.get(MOVE_RATE, math.inf)),
        steady_clock_ms=runtime.steady_clock_ms,
        producer_id_expiration_ms=lambda: configs.node_config.producer_id_expiration_ms,
        random=runtime.random,
    )
    mover = LogMover(
        logs,
        files,
        loop,
        moved,
        copier,
        thread_count=config.num_replica_alter_log_dirs_threads,
        random=runtime.random,
    )
    telemetry = ClientTelemetry(loop, runtime.monotonic_ms, telemetry_max_bytes=config.telemetry_max_bytes)
    peer_log = PeerLog(loop)
    handlers = register_handlers(
        HandlerDependencies(
            config=config,
            controller=controller,
            describe_quorum=describe_quorum,
            hello=hello,
            tls=tls,
            sasl=sasl,
            lifecycle=lifecycle,
            metadata=metadata,
            suspected=suspected,
            departures=departures,
            configs=configs,
            data_path=data_path,
            groups=groups,
            transactions=transactions,
            producer_ids=producer_ids,
            throttles=throttles,
            directories=logs.directories,
            directory_choice=logs.directory_choice,
            futures=logs.futures,
            mover=mover,
            files=files,
            peer_log=peer_log,
            telemetry=telemetry,
            tier=lambda: None if tier is None else tier.search,
            runtime=runtime,
        )
    )
    for channel in peer_channels:
        channel.attach(handlers)
    dispatcher = Dispatcher(handlers, loop, peer_log, requests)
    authorizer = authorizer_of(config, metadata, loop)

    def on_connection_lost(context: RequestContext, is_closed_by_peer: bool) -> None:
        telemetry.disconnect(context.connection)
        if is_closed_by_peer and context.node_id is not None:
            suspected.on_closed(context.node_id)

    begin_request = dispatcher.begin if intercept is None else intercept(handlers, dispatcher.begin)
    configs.on_change(lambda _old, new: tls.change(new.tls))
    configs.on_change(lambda _old, new: logs.set_producer_id_expiration(new.producer_id_expiration_ms))
    configs.on_change(lambda _old, new: logs.set_recovery_threads(new.num_recovery_threads_per_data_dir))
    return BrokerParts(
        lifecycle=lifecycle,
        controller=controller,
        configs=configs,
        throttles=throttles,
        data_path=data_path,
        flusher=flusher,
        flush_times=flush_times,
        fetchers=made_fetchers[0],
        alter_partitions=alter_partitions,
        groups=groups,
        transactions=transactions,
        telemetry=telemetry,
        tier=tier,
        directories=directories,
        housekeeping=housekeeping,
        cleaner=cleaner,
        mover=mover,
        scrubber=scrubber,
        peer_channels=peer_channels,
        admin_channel=admin_channel,
        handlers=handlers,
        authorizer=authorizer,
        dispatcher=dispatcher,
        requests=requests,
        listeners=_wire_listeners(
            config,
            configs,
            handlers,
            begin_request,
            memory,
            requests,
            peer_log,
            tls,
            authorizer,
            quotas,
            loop,
            on_connection_lost=on_connection_lost,
        ),
    )


def _wire_listeners(
    config: NodeConfig,
    configs: ConfigResolver,
    handlers: Handlers,
    begin_request: Callable[[Request], None],
    memory: RequestMemory,
    requests: RequestStatistics,
    peer_log: PeerLog,
    tls: TlsContexts,
    authorizer: Authorizer | None,
    quotas: ClientQuotas,
    loop: asyncio.AbstractEventLoop,
    *,
    on_connection_lost: Callable[[RequestContext, bool], None],
) -> Listeners:
    limits = ConnectionLimits(
        total=config.max_connections,
        per_host=config.max_connections_per_ip,
        per_host_overrides=config.max_connections_per_ip_overrides,
    )
    configs.on_change(
        lambda _old, new: limits.set_limits(
            total=new.max_connections,
            per_host=new.max_connections_per_ip,
            per_host_overrides=new.max_connections_per_ip_overrides,
        )
    )
    rates = ConnectionRates(
        sample_count=config.quotas.quota_window_num, window_ms=1000 * config.quotas.quota_window_size_seconds
    )
    _limit_rates(rates, config)
    configs.on_change(lambda _old, new: _limit_rates(rates, new))
    host = ConnectionHost(
        loop=loop,
        begin=begin_request,
        overlapping=handlers.overlapping,
        memory=memory,
        requests=requests,
        peer_log=peer_log,
        authorizer=authorizer,
        limits=limits,
        rates=rates,
        find_quota=quotas.find,
        request_bytes_max=config.socket_request_max_bytes,
        idle_ms_max=config.connections_max_idle_ms if config.connections_max_idle_ms >= 0 else NEVER_MS,
        on_connection_lost=on_connection_lost,
    )
    quotas.attach(host.on_quotas_changed, rates)
    return Listeners(
        host,
        tls_of=tls.server,
        principal_mapping_of=config.principal_mapping_of,
        sasl=config.sasl,
        failed_authentication_delay_ms=config.failed_authentication_delay_ms,
    )


def _limit_rates(rates: ConnectionRates, config: NodeConfig) -> None:
    has_others = len(config.listeners) > 1
    rates.set_limits(
        total=config.quotas.max_connection_creation_rate,
        by_listener=config.quotas.listener_connection_rates,
        protected_listener=config.inter_broker_listener_name if has_others else None,
    )


def _data_path_config(config: NodeConfig) -> DataPathConfig:
    return DataPathConfig(
        node_id=config.node_id,
        replica_lag_time_max_ms=config.replica_lag_time_max_ms,
        max_incremental_fetch_session_cache_slots=config.max_incremental_fetch_session_cache_slots,
        fetch_max_bytes=config.fetch_max_bytes,
        is_closest_replica_read=config.is_closest_replica_read,
    )


def _housekeeping_config(config: NodeConfig) -> HousekeepingConfig:
    return HousekeepingConfig(
        log_initial_task_delay_ms=config.log_initial_task_delay_ms,
        log_flush_scheduler_interval_ms=config.log_flush_scheduler_interval_ms,
        log_flush_offset_checkpoint_interval_ms=config.log_flush_offset_checkpoint_interval_ms,
        log_flush_start_offset_checkpoint_interval_ms=config.log_flush_start_offset_checkpoint_interval_ms,
        replica_high_watermark_checkpoint_interval_ms=config.replica_high_watermark_checkpoint_interval_ms,
        log_retention_check_interval_ms=config.log_retention_check_interval_ms,
        producer_id_expiration_check_interval_ms=config.producer_id_expiration_check_interval_ms,
    )


def _cleaner_config(config: NodeConfig) -> LogCleanerConfig:
    return LogCleanerConfig(
        log_cleaner_enable=config.log_cleaner_enable,
        log_cleaner_threads=config.log_cleaner_threads,
        log_cleaner_dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size,
        log_cleaner_io_max_bytes_per_second=config.log_cleaner_io_max_bytes_per_second,
        log_cleaner_backoff_ms=config.log_cleaner_backoff_ms,
    )


def _verification_config(config: NodeConfig) -> VerificationConfig:
    return VerificationConfig(
        is_enabled=config.transactions.transaction_partition_verification_enable,
        retry_backoff_ms=config.transactions.add_partitions_to_txn_retry_backoff_ms,
        retry_ms_max=config.transactions.add_partitions_to_txn_retry_backoff_max_ms,
    )


def _replication_config(config: NodeConfig) -> ReplicationConfig:
    return ReplicationConfig(
        node_id=config.node_id,
        listener_name=config.inter_broker_listener_name,
        fetcher_count=config.num_replica_fetchers,
        fetcher=FetcherConfig(
            wait_ms_max=config.replica_fetch_wait_max_ms,
            bytes_min=config.replica_fetch_min_bytes,
            bytes_max=config.replica_fetch_max_bytes,
            response_bytes_max=config.replica_fetch_response_max_bytes,
            backoff_ms=config.replica_fetch_backoff_ms,
            timeout_ms=config.replica_socket_timeout_ms,
        ),
    )


def peers_of(config: NodeConfig, hello: Callable[[], PeerHello], tls: TlsContexts) -> PeerConnector:
    # A node without peers starts without loading it.
    from ..cluster.peers import PeerConnector

    return PeerConnector(
        secret=config.cluster_secret,
        hello=hello,
        certificates=config.node_certificates,
        tls=tls.client(config.inter_broker_listener_name),
    )


def _high_watermark(partitions: ReplicaManager, log: Log) -> int:
    partition = partitions.find(log.topic, log.partition)
    return log.log_start_offset if partition is None else partition.state.high_watermark
