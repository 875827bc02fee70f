"""The parts of a controller that its handlers need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import asyncio

    from ....quorum.controller.controller import Controller
    from ....quorum.raft.consensus import Consensus
    from ....quorum.voter.snapshots import Snapshots
    from ...cluster.controller_channel import LocalControllerChannel
    from ...cluster.metadata_cache import MetadataCache
    from ...cluster.rules.quorum_view import QuorumView
    from ...configuration.node_config import NodeConfig
    from ...configuration.topic_configs import ConfigResolver
    from ...network.handlers import HeaderTags
    from ..heartbeat_connections import HeartbeatConnections


class ControllerHandlerDependencies(Struct, frozen=True, kw_only=True):
    """What handlers are made of."""

    config: NodeConfig
    controller: Controller
    local: LocalControllerChannel
    """To that controller."""
    consensus: Consensus
    snapshots: Snapshots
    view: QuorumView
    metadata: MetadataCache
    configs: ConfigResolver
    heartbeats: HeartbeatConnections
    header_tags: HeaderTags
    loop: asyncio.AbstractEventLoop
