"""FindCoordinator 0 to 6: there are no coordinators yet, neither of groups nor of transactions or share groups.

Every key is answered with COORDINATOR_NOT_AVAILABLE, which clients take for "not now" and try again (1: KIP-98,
4: several keys at once, KIP-699).
"""

from __future__ import annotations

from typing import Final

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

KEY_TYPES: Final = (0, 1, 2)
"""Groups, transactions, share groups (KIP-932)."""


def register(handlers: Handlers) -> None:
    handlers.add_message(ApiKey.FIND_COORDINATOR, find_coordinator, answer_error=error_response)


def find_coordinator(request: FindCoordinatorRequest, _context: RequestContext) -> FindCoordinatorResponse:
    is_known = request.key_type in KEY_TYPES
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE if is_known else ErrorCode.INVALID_REQUEST
    return error_response(request, KafkaError(code))


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
