"""Every API that a broker serves its clients, with the parts of the node that each needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.types import BrokerId
from kio.static.primitive import i64

from ..quorum.controller_requests import ALLOCATE_PRODUCER_IDS
from ..quorum.links.peer_proof import PeerHello
from ..storage.files import Files
from ..storage.log_directory import LogDirectory
from .apis import (
    alter_configs,
    alter_reassignments,
    api_versions,
    delete_records,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    partition_reassignments,
    peer_authentication,
    produce,
    topics,
    unregister_broker,
    update_features,
)
from .apis.describe_quorum import DescribeQuorum
from .configuration.node_config import NodeConfig
from .configuration.topic_configs import ConfigResolver
from .controller_channel import ControllerChannel
from .fetch_sessions import FetchSessions
from .lifecycle import BrokerLifecycle
from .metadata_view import MetadataView
from .network.handlers import Handlers
from .network.peer_log import PeerLog
from .partitions.partition_manager import PartitionManager
from .producer_ids import ProducerIds
from .tls_contexts import TlsContexts

SESSION_ID_BITS = 31
"""Fetch session ids are positive numbers of 32 bits; 0 means none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerParts:
    """What handlers are made of."""

    config: NodeConfig
    controller: ControllerChannel
    describe_quorum: DescribeQuorum
    hello: Callable[[], PeerHello]
    tls: TlsContexts
    lifecycle: BrokerLifecycle
    metadata: MetadataView
    configs: ConfigResolver
    partitions: PartitionManager
    directories: Sequence[LogDirectory]
    files: Files
    peer_log: PeerLog
    loop: asyncio.AbstractEventLoop
    wall_clock_ms: Callable[[], int]
    # The same for decisions.
    steady_clock_ms: Callable[[], int]
    random: Random


def register_handlers(parts: HandlerParts) -> Handlers:
    """The table from which the node dispatches and ApiVersions answers."""
    handlers = Handlers()
    config, controller = parts.config, parts.controller
    settled = parts.partitions.settled_soon
    creation: metadata.CreateTopics | None = None
    if config.auto_create_topics_enable:
        creation = topics.automatic_creation(controller, settled=settled, peer_log=parts.peer_log)

    api_versions.register(handlers, parts.metadata)
    metadata.register(handlers, parts.metadata, creation)
    describe_cluster.register(handlers, parts.metadata)
    describe_quorum.register(handlers, parts.describe_quorum)
    peer_authentication.register(
        handlers, secret=config.cluster_secret, certificates=config.node_certificates, hello=parts.hello
    )
    describe_topic_partitions.register(handlers, parts.metadata, config.max_request_partition_size_limit)
    find_coordinator.register(handlers)
    elect_leaders.register(handlers, controller, settled=settled)
    alter_reassignments.register(handlers, controller)
    partition_reassignments.register(handlers, parts.metadata)
    update_features.register(handlers, controller)
    unregister_broker.register(handlers, controller, settled=settled)
    topics.register(handlers, controller, settled=settled, is_deletion_enabled=config.delete_topic_enable)

    describe_configs.register(handlers, parts.metadata, parts.configs)
    alter_configs.register(handlers, parts.metadata, parts.configs, controller, check_tls=parts.tls.check)

    produce.register(handlers, produce.ProduceHandler(parts.partitions, parts.wall_clock_ms))
    sessions = FetchSessions(
        config.max_incremental_fetch_session_cache_slots,
        lambda: parts.random.randrange(1, 1 << SESSION_ID_BITS),
    )
    fetch.register(
        handlers,
        fetch.FetchHandler(
            parts.partitions,
            sessions,
            max_bytes=config.fetch_max_bytes,
            monotonic_ms=lambda: int(parts.loop.time() * 1000),
        ),
    )
    list_offsets.register(handlers, parts.partitions)
    offset_for_leader_epoch.register(handlers, parts.partitions)
    delete_records.register(handlers, parts.partitions)
    describe_log_dirs.register(handlers, parts.partitions, parts.directories, parts.files)
    describe_producers.register(handlers, parts.partitions, parts.steady_clock_ms)
    init_producer_id.register(handlers, ProducerIds(lambda: _allocate_producer_ids(parts)))
    return handlers


async def _allocate_producer_ids(parts: HandlerParts) -> range:
    request = AllocateProducerIdsRequest(
        broker_id=BrokerId(parts.config.node_id), broker_epoch=i64(parts.lifecycle.broker_epoch)
    )
    response = await parts.controller.submit(ALLOCATE_PRODUCER_IDS, request)
    return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)
