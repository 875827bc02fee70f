"""The authorizer that a node's configuration asks for."""

from __future__ import annotations

import asyncio

from ..cluster.metadata_cache import MetadataCache
from ..configuration.node_config import NodeConfig
from ..network.peer_log import PeerLog
from ..network.request import Authorizer
from .authorizer import AclAuthorizer, logger


def authorizer_of(config: NodeConfig, metadata: MetadataCache, loop: asyncio.AbstractEventLoop) -> Authorizer | None:
    """Returns None where everyone may do everything. Each listener has its own: what is kept is of its clients."""
    if config.authorizer is None:
        return None
    return AclAuthorizer(config.authorizer, lambda: metadata.image, PeerLog(loop, logger))
