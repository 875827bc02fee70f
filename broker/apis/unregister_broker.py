"""UnregisterBroker 0: forwarded to the controller (KIP-631), which has the rules.

A client must be allowed to alter the cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.decisions.broker_removal import UNREGISTER_BROKER
from ..cluster.controller_channel import ControllerChannel
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..security.client_changes import Guard, ask_controller, in_cluster


def register(handlers: Handlers, controller: ControllerChannel, *, settled: Callable[[], Awaitable[None]]) -> None:
    """`settled` waits until this node has applied the metadata to its partitions."""

    async def unregister(request: UnregisterBrokerRequest, context: RequestContext) -> UnregisterBrokerResponse:
        guard: Guard[UnregisterBrokerRequest, UnregisterBrokerResponse] = in_cluster(
            ApiKey.UNREGISTER_BROKER, AclOperation.ALTER
        )
        response = await ask_controller(controller, UNREGISTER_BROKER, request, context, guard)
        await settled()
        return response

    handlers.add_message(ApiKey.UNREGISTER_BROKER, unregister, answer_error=error_response)


def error_response(_request: UnregisterBrokerRequest, error: KafkaError) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(
        throttle_time=NO_THROTTLE, error_code=kio_error(error.code), error_message=error.message
    )
