"""Every API that a broker serves its clients, with the parts of the node that each needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...quorum.links.rules.peer_proof import PeerHello
from ...storage.directories.directory_choice import DirectoryChoice
from ...storage.directories.future_logs import FutureLogs
from ...storage.directories.log_directory import LogDirectory
from ...storage.directories.log_mover import LogMover
from ...storage.disk.files import Files
from ..apis import (
    acls,
    add_to_transaction,
    alter_configs,
    alter_reassignments,
    alter_replica_log_dirs,
    api_versions,
    classic_groups,
    client_quotas,
    client_requests,
    client_telemetry,
    consumer_groups,
    delegation_tokens,
    delete_records,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    elect_leaders,
    end_transaction,
    fetch,
    fetch_producers,
    find_coordinator,
    group_administration,
    group_offsets,
    init_producer_id,
    list_offsets,
    metadata,
    offset_commit,
    offset_for_leader_epoch,
    partition_reassignments,
    produce,
    sasl_authentication,
    scram_credentials,
    topics,
    transaction_administration,
    txn_offset_commit,
    unimplemented,
    unregister_broker,
    update_features,
    write_txn_markers,
)
from ..apis.describe_quorum import DescribeQuorum
from ..cluster.controller_channel import ControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..cluster.producer_ids import ProducerIds
from ..cluster.rules.recent_departures import RecentDepartures
from ..cluster.suspected_peers import SuspectedPeers
from ..cluster.tls_contexts import TlsContexts
from ..configuration.loggers import PROCESS_LOGGERS
from ..configuration.node_config import NodeConfig
from ..configuration.topic_configs import ConfigResolver
from ..coordinators.group_coordinator import OFFSETS_TOPIC, GroupCoordinator
from ..coordinators.internal_topic import InternalTopic
from ..coordinators.transaction_coordinator import TRANSACTIONS_TOPIC, TransactionCoordinator
from ..network.handlers import Handlers
from ..network.peer_log import PeerLog
from ..replication.rules.replication_throttles import ReplicationThrottles
from ..security.rules.sasl_mechanisms import SaslMechanisms
from ..security.wiring import authorizer_of
from ..telemetry.client_telemetry import ClientTelemetry
from ..timing.runtime import Runtime
from .data_path import DataPath
from .lifecycle import BrokerLifecycle


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerDependencies:
    """What handlers are made of."""

    config: NodeConfig
    controller: ControllerChannel
    describe_quorum: DescribeQuorum
    hello: Callable[[], PeerHello]
    tls: TlsContexts
    sasl: SaslMechanisms
    lifecycle: BrokerLifecycle
    metadata: MetadataCache
    suspected: SuspectedPeers
    departures: RecentDepartures
    configs: ConfigResolver
    data_path: DataPath
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    producer_ids: ProducerIds
    throttles: ReplicationThrottles
    directories: Sequence[LogDirectory]
    directory_choice: DirectoryChoice
    futures: FutureLogs
    mover: LogMover
    files: Files
    peer_log: PeerLog
    telemetry: ClientTelemetry
    tier: Callable[[], list_offsets.TierSearch | None]
    runtime: Runtime


def register_handlers(parts: HandlerDependencies) -> Handlers:
    """The table from which the node dispatches and ApiVersions answers."""
    handlers = Handlers()
    config, controller, partitions = parts.config, parts.controller, parts.data_path.partitions
    settled = partitions.settled_soon
    creation: metadata.CreateTopics | None = None
    if config.auto_create_topics_enable:
        creation = topics.automatic_creation(
            controller,
            partition_count=config.auto_create_partition_count,
            replication_factor=config.auto_create_replication_factor,
            settled=settled,
            peer_log=parts.peer_log,
        )

    api_versions.register(handlers, parts.metadata)
    metadata.register(handlers, parts.metadata, creation, parts.suspected, parts.departures)
    describe_cluster.register(handlers, parts.metadata)
    scram_credentials.register(handlers, parts.metadata, controller)
    acls.register(handlers, parts.metadata, controller, has_authorizer=config.authorizer is not None)
    delegation_tokens.register(handlers, parts.metadata, controller, config.delegation_tokens)
    describe_quorum.register(handlers, parts.describe_quorum)
    sasl_authentication.register(
        handlers,
        sasl_authentication.SaslDependencies(
            mechanisms=parts.sasl,
            secret=config.cluster_secret,
            certificates=config.node_certificates,
            hello=parts.hello,
            failed_authentication_delay_ms=config.failed_authentication_delay_ms,
            peer_log=parts.peer_log,
            loop=parts.runtime.loop,
            wall_clock_ms=parts.runtime.wall_clock_ms,
        ),
    )
    describe_topic_partitions.register(
        handlers, parts.metadata, config.max_request_partition_size_limit, parts.suspected
    )
    find_coordinator.register(
        handlers, parts.metadata, _offsets_topic(parts), _transactions_topic(parts), parts.suspected
    )
    classic_groups.register(handlers, parts.groups, config.groups)
    offset_commit.register(handlers, parts.groups, parts.metadata)
    txn_offset_commit.register(handlers, parts.groups, parts.metadata, parts.data_path.verifier)
    consumer_groups.register(handlers, parts.groups, parts.metadata, config.groups.consumer)
    group_offsets.register(handlers, parts.groups, parts.metadata)
    group_administration.register(handlers, parts.groups)
    elect_leaders.register(handlers, controller, settled=settled)
    alter_reassignments.register(handlers, controller)
    partition_reassignments.register(handlers, parts.metadata)
    update_features.register(handlers, controller)
    unregister_broker.register(handlers, controller, settled=settled)
    topics.register(
        handlers,
        parts.metadata,
        controller,
        settled=settled,
        is_deletion_enabled=config.delete_topic_enable,
    )

    client_quotas.register(handlers, parts.metadata, controller)
    describe_configs.register(handlers, parts.metadata, parts.configs, PROCESS_LOGGERS)
    alter_configs.register(
        handlers, parts.metadata, parts.configs, controller, PROCESS_LOGGERS, check_tls=parts.tls.check
    )

    produce.register(handlers, parts.data_path.produce)
    fetch.register(handlers, parts.data_path.fetch)
    fetch_producers.register(handlers, partitions)
    client_requests.register(
        handlers,
        parts.runtime.loop,
        parts.peer_log,
        authorizer_of(config, parts.metadata, parts.runtime.loop),
    )
    list_offsets.register(handlers, partitions, parts.tier)
    offset_for_leader_epoch.register(handlers, partitions)
    delete_records.register(handlers, partitions)
    alter_replica_log_dirs.register(handlers, partitions, parts.directories, parts.directory_choice.prefer, parts.mover)
    describe_log_dirs.register(handlers, partitions, parts.directories, parts.files, parts.futures)
    write_txn_markers.register(handlers, partitions, parts.groups, parts.runtime.wall_clock_ms)
    describe_producers.register(handlers, partitions, parts.runtime.steady_clock_ms)
    init_producer_id.register(handlers, parts.producer_ids, parts.transactions)
    add_to_transaction.register(handlers, parts.transactions, parts.metadata, config.groups)
    end_transaction.register(handlers, parts.transactions)
    transaction_administration.register(handlers, parts.transactions, parts.runtime.wall_clock_ms)
    client_telemetry.register(handlers, parts.telemetry, parts.runtime.random)
    unimplemented.register(handlers)
    return handlers


def _offsets_topic(parts: HandlerDependencies) -> InternalTopic:
    config = parts.config.groups
    return InternalTopic(
        OFFSETS_TOPIC,
        lambda: parts.metadata.image,
        parts.controller,
        settled=parts.data_path.partitions.settled,
        partition_count=config.offsets_topic_num_partitions,
        replication_factor=config.offsets_topic_replication_factor,
        is_replication_factor_capped=config.is_replication_factor_capped,
        configs=lambda _: {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )


def _transactions_topic(parts: HandlerDependencies) -> InternalTopic:
    config = parts.config.transactions

    def configs(replication_factor: int) -> Mapping[str, str]:
        # If the replication factor was defaulted and capped by the brokers, min.insync.replicas is capped with it.
        min_isr = config.transaction_state_log_min_isr
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(
                min(min_isr, replication_factor) if config.is_replication_factor_capped else min_isr
            ),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }

    return InternalTopic(
        TRANSACTIONS_TOPIC,
        lambda: parts.metadata.image,
        parts.controller,
        settled=parts.data_path.partitions.settled,
        partition_count=config.transaction_state_log_num_partitions,
        replication_factor=config.transaction_state_log_replication_factor,
        is_replication_factor_capped=config.is_replication_factor_capped,
        configs=configs,
    )
