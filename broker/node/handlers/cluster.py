"""The cluster as a whole: its nodes, its quorum, its features."""

from __future__ import annotations

from ...apis import (
    client_requests,
    describe_cluster,
    describe_quorum,
    unregister_broker,
    update_features,
)
from ...network.handlers import Handlers
from ...security.wiring import authorizer_of
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    describe_cluster.register(handlers, parts.metadata)
    describe_quorum.register(handlers, parts.describe_quorum)
    update_features.register(handlers, parts.controller)
    unregister_broker.register(handlers, parts.controller, settled=parts.data_path.partitions.settled_soon)
    client_requests.register(
        handlers,
        parts.runtime.loop,
        parts.peer_log,
        authorizer_of(parts.config, parts.metadata, parts.runtime.loop),
    )
