"""Every API that a broker serves its clients, with the parts of the node that each needs.

What a node does until its first record is there from the start. The rest is loaded when it is asked for, or soon after
the node has started: it would be most of what a start takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....protocol.apis import ApiKey
from ....protocol.own_apis import OwnApiKey
from ...apis import api_versions, fetch, metadata, produce, unimplemented
from ...network.handlers import Handlers
from ...network.request import RequestContext
from ..later_handlers import add_modules
from .dependencies import HandlerDependencies

LATER: Final[Mapping[str, tuple[ApiKey | OwnApiKey, ...]]] = {
    "authentication": (
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
    ),
    "cluster": (
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        OwnApiKey.ASK_FOR_CLIENT,
    ),
    "configs": (
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.LIST_CONFIG_RESOURCES,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ),
    "directories": (
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.DESCRIBE_LOG_DIRS,
    ),
    "groups": (
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.OFFSET_COMMIT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_DELETE,
        ApiKey.LIST_GROUPS,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.DELETE_GROUPS,
    ),
    "offsets": (
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DELETE_RECORDS,
        OwnApiKey.FETCH_PRODUCERS,
    ),
    "reassignments": (
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ),
    "security": (
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ),
    "telemetry": (
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
    ),
    "topic_descriptions": (ApiKey.DESCRIBE_TOPIC_PARTITIONS,),
    "topics": (
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
    ),
    "transactions": (
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.LIST_TRANSACTIONS,
    ),
}
"""By the module here that has them."""


def register_handlers(parts: HandlerDependencies) -> Handlers:
    """The table from which the node dispatches and ApiVersions answers."""
    handlers = Handlers()
    creation = _automatic_creation(parts) if parts.config.auto_create_topics_enable else None
    api_versions.register(handlers, parts.metadata)
    metadata.register(handlers, parts.metadata, creation, parts.suspected, parts.departures)
    produce.register(handlers, parts.data_path.produce)
    fetch.register(handlers, parts.data_path.fetch)
    add_modules(handlers, __package__, LATER, parts)
    unimplemented.register(handlers)
    return handlers


def _automatic_creation(parts: HandlerDependencies) -> metadata.CreateTopics:
    async def create(names: tuple[str, ...], context: RequestContext) -> None:
        from ...apis import topics

        config = parts.config
        await topics.automatic_creation(
            parts.controller,
            partition_count=config.auto_create_partition_count,
            replication_factor=config.auto_create_replication_factor,
            settled=parts.data_path.partitions.settled_soon,
            peer_log=parts.peer_log,
        )(names, context)

    return create
