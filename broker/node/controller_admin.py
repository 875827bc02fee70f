"""What a node that is no broker answers to its HTTP administration: what metadata and controller know."""

from __future__ import annotations

from ..apis import (
    acls,
    alter_configs,
    alter_reassignments,
    describe_configs,
    describe_quorum,
    elect_leaders,
    partition_reassignments,
    topics,
    unregister_broker,
    update_features,
)
from ..apis.describe_quorum import DescribeQuorum
from ..cluster.controller_channel import ControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..cluster.tls_contexts import TlsContexts
from ..configuration.loggers import PROCESS_LOGGERS
from ..configuration.node_config import NodeConfig
from ..configuration.topic_configs import ConfigResolver
from ..network.handlers import Handlers


def register_admin_handlers(
    config: NodeConfig,
    metadata: MetadataCache,
    configs: ConfigResolver,
    controller: ControllerChannel,
    describe: DescribeQuorum,
    tls: TlsContexts,
) -> Handlers:
    """A table without a listener: only the node itself asks it."""

    async def settled() -> None:
        """There are no partitions here that would have to follow the metadata."""

    handlers = Handlers()
    acls.register(handlers, metadata, controller, has_authorizer=config.authorizer is not None)
    describe_quorum.register(handlers, describe)
    topics.register(
        handlers,
        metadata,
        controller,
        settled=settled,
        is_deletion_enabled=config.delete_topic_enable,
    )
    elect_leaders.register(handlers, controller, settled=settled)
    alter_reassignments.register(handlers, controller)
    partition_reassignments.register(handlers, metadata)
    update_features.register(handlers, controller)
    unregister_broker.register(handlers, controller, settled=settled)
    describe_configs.register(handlers, metadata, configs, PROCESS_LOGGERS)
    alter_configs.register(handlers, metadata, configs, controller, PROCESS_LOGGERS, check_tls=tls.check)
    return handlers
