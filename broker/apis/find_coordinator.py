"""FindCoordinator 0 to 6: there are no coordinators yet, neither of groups nor of transactions or share groups.

Every key is answered with COORDINATOR_NOT_AVAILABLE, which clients take for "not now" and try again (1: KIP-98,
4: several keys at once, KIP-699).
"""

from __future__ import annotations

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError, error_info
from ...protocol.messages import kio_error
from ..network.handlers import Handlers
from ..network.request import RequestContext
from .values import NO_THROTTLE


def register(handlers: Handlers) -> None:
    handlers.add_message(ApiKey.FIND_COORDINATOR, find_coordinator, answer_error=error_response)


def find_coordinator(request: FindCoordinatorRequest, _context: RequestContext) -> FindCoordinatorResponse:
    return error_response(request, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))


def error_response(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        throttle_time=NO_THROTTLE,
        coordinators=tuple(
            Coordinator(
                key=key,
                node_id=BrokerId(-1),
                host="",
                port=i32(-1),
                error_code=kio_error(error.code),
                error_message=error.message or error_info(error.code).sentence,
            )
            for key in request.coordinator_keys
        ),
    )
