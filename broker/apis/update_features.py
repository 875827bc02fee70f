"""UpdateFeatures 0 to 2: forwarded to the controller.

1: upgrade types and validation (KIP-778). 2: one result for all updates (KIP-1022). The controller has the rules
(`quorum/decisions/features.py`). A client must be allowed to alter the cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import KafkaError
from ...quorum.decisions.features import UPDATE_FEATURES, UpdateRequest, UpdateResponse, answer
from ..cluster.controller_channel import ControllerChannel
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..security.client_changes import Guard, ask_controller, in_cluster


def register(handlers: Handlers, controller: ControllerChannel) -> None:
    def update(request: UpdateRequest, context: RequestContext) -> Awaitable[UpdateResponse]:
        guard: Guard[UpdateRequest, UpdateResponse] = in_cluster(ApiKey.UPDATE_FEATURES, AclOperation.ALTER)
        return ask_controller(controller, UPDATE_FEATURES, request, context, guard)

    handlers.add_message(ApiKey.UPDATE_FEATURES, update, answer_error=error_response)


def error_response(request: UpdateRequest, error: KafkaError) -> UpdateResponse:
    return answer(request, error.code, error.message)
