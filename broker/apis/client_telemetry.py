"""GetTelemetrySubscriptions 0 and PushTelemetry 0: metrics of clients (KIP-714).

Apache Kafka advertises both once a plug-in takes the metrics; here they become series of the node's own metrics, so
both are advertised always. Counters are requested as deltas, as Apache Kafka requests them. A push that takes more than
`telemetry.max.bytes` uncompressed is refused with TELEMETRY_TOO_LARGE, too. Kafka: `ClientMetricsManager`.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Final
from uuid import UUID

from kio.schema.get_telemetry_subscriptions.v0.request import GetTelemetrySubscriptionsRequest
from kio.schema.get_telemetry_subscriptions.v0.response import GetTelemetrySubscriptionsResponse
from kio.schema.push_telemetry.v0.request import PushTelemetryRequest
from kio.schema.push_telemetry.v0.response import PushTelemetryResponse
from kio.static.primitive import i8, i32, i32Timedelta

from ...protocol.apis import ApiKey
from ...protocol.compression import Compression
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..telemetry.client_telemetry import RESERVED_IDS, ClientTelemetry
from ..telemetry.rules.subscriptions import ClientDetails

# In the order of preference: clients take the first that they know.
ACCEPTED_COMPRESSIONS: Final = tuple(
    i8(one) for one in (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
)
_UNKNOWN: Final = "unknown"
_NO_ID: Final = UUID(int=0)


def register(handlers: Handlers, telemetry: ClientTelemetry, random: Random) -> None:
    """`random` draws the ids of client instances."""
    apis = ClientTelemetryRequests(telemetry, random)
    handlers.add_message(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, apis.get, answer_error=get_error)
    handlers.add_message(ApiKey.PUSH_TELEMETRY, apis.push, answer_error=push_error)


class ClientTelemetryRequests:
    """Between the messages and `ClientTelemetry`."""

    def __init__(self, telemetry: ClientTelemetry, random: Random) -> None:
        self._telemetry = telemetry
        self._random = random

    def get(
        self, request: GetTelemetrySubscriptionsRequest, context: RequestContext
    ) -> GetTelemetrySubscriptionsResponse:
        """Raises KafkaError."""
        instance_id = request.client_instance_id or self._new_id()
        instance = self._telemetry.subscribe(_details(instance_id, context), context.connection)
        return GetTelemetrySubscriptionsResponse(
            throttle_time=NO_THROTTLE,
            error_code=kio_error(ErrorCode.NONE),
            client_instance_id=instance.id,
            subscription_id=i32(instance.subscription_id),
            accepted_compression_types=ACCEPTED_COMPRESSIONS,
            push_interval=i32Timedelta.parse(timedelta(milliseconds=instance.selection.interval_ms)),
            telemetry_max_bytes=i32(self._telemetry.telemetry_max_bytes),
            delta_temporality=True,
            requested_metrics=instance.selection.metrics,
        )

    async def push(self, request: PushTelemetryRequest, context: RequestContext) -> PushTelemetryResponse:
        """Raises KafkaError."""
        await self._telemetry.push(
            _details(request.client_instance_id or _NO_ID, context),
            context.connection,
            subscription_id=request.subscription_id,
            is_terminating=request.terminating,
            compression=request.compression_type,
            metrics=request.metrics,
        )
        return PushTelemetryResponse(throttle_time=NO_THROTTLE, error_code=kio_error(ErrorCode.NONE))

    def _new_id(self) -> UUID:
        while True:
            instance_id = UUID(int=self._random.getrandbits(128), version=4)
            if instance_id not in RESERVED_IDS and not self._telemetry.has_instance(instance_id):
                return instance_id


def _details(instance_id: UUID, context: RequestContext) -> ClientDetails:
    name, _, version = context.client_software.partition("/")
    return ClientDetails(
        client_instance_id=instance_id,
        client_id=context.client_id or "",
        client_software_name=name,
        client_software_version=version or _UNKNOWN,
        client_source_address=context.peer_host,
        client_source_port=context.peer_port,
    )


def get_error(_request: GetTelemetrySubscriptionsRequest, error: KafkaError) -> GetTelemetrySubscriptionsResponse:
    return GetTelemetrySubscriptionsResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error.code),
        client_instance_id=None,
        subscription_id=i32(0),
        push_interval=NO_THROTTLE,
        telemetry_max_bytes=i32(0),
        delta_temporality=False,
    )


def push_error(_request: PushTelemetryRequest, error: KafkaError) -> PushTelemetryResponse:
    return PushTelemetryResponse(throttle_time=NO_THROTTLE, error_code=kio_error(error.code))
