"""The cluster as a whole: its nodes, its quorum, its features."""

from __future__ import annotations

from ....protocol.apis import ApiKey
from ....quorum.decisions.broker_removal import UNREGISTER_BROKER
from ....quorum.decisions.features import UPDATE_FEATURES
from ...apis import describe_cluster, describe_quorum, quorum_operations, unregister_broker, update_features
from ...network.handlers import Handlers
from .decided_request import add_decided, altering
from .dependencies import ControllerHandlerDependencies


def register(handlers: Handlers, parts: ControllerHandlerDependencies) -> None:
    consensus, view = parts.consensus, parts.view
    add_decided(handlers, parts, UPDATE_FEATURES, update_features.error_response, altering(ApiKey.UPDATE_FEATURES))
    add_decided(
        handlers, parts, UNREGISTER_BROKER, unregister_broker.error_response, altering(ApiKey.UNREGISTER_BROKER)
    )
    describe_cluster.register_for_controllers(handlers, parts.metadata, lambda: consensus.leader_id)
    describe_quorum.register(handlers, lambda request, _context: describe_quorum.describe(view, request))
    authorizer = parts.config.authorizer
    operator = quorum_operations.QuorumOperator(consensus, parts.controller, parts.snapshots, authorizer)
    quorum_operations.register(handlers, operator)
