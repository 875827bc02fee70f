"""The parts of a node that its handlers need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from ....quorum.links.rules.peer_proof import PeerHello
    from ....storage.directories.directory_choice import DirectoryChoice
    from ....storage.directories.future_logs import FutureLogs
    from ....storage.directories.log_directory import LogDirectory
    from ....storage.directories.log_mover import LogMover
    from ....storage.disk.files import Files
    from ...apis.describe_quorum import DescribeQuorum
    from ...apis.list_offsets import TierSearch
    from ...cluster.controller_channel import ControllerChannel
    from ...cluster.metadata_cache import MetadataCache
    from ...cluster.producer_ids import ProducerIds
    from ...cluster.rules.recent_departures import RecentDepartures
    from ...cluster.suspected_peers import SuspectedPeers
    from ...cluster.tls_contexts import TlsContexts
    from ...configuration.node_config import NodeConfig
    from ...configuration.topic_configs import ConfigResolver
    from ...coordinators.group_coordinator import GroupCoordinator
    from ...coordinators.transaction_coordinator import TransactionCoordinator
    from ...network.peer_log import PeerLog
    from ...replication.rules.replication_throttles import ReplicationThrottles
    from ...security.rules.sasl_mechanisms import SaslMechanisms
    from ...telemetry.client_telemetry import ClientTelemetry
    from ...timing.runtime import Runtime
    from ..data_path import DataPath
    from ..lifecycle import BrokerLifecycle


class HandlerDependencies(Struct, frozen=True, kw_only=True):
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
    tier: Callable[[], TierSearch | None]
    runtime: Runtime
