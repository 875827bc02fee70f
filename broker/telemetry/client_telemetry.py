"""The telemetry of clients: their instances, and the series that they push (KIP-714). Kafka: `ClientMetricsManager`.

Every client that knows the API asks for its subscription, whether there is one or not: the answer is made from a cache
and costs a client one request in five minutes. Only a push that was asked for is opened, in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msgspec import Struct

from ...protocol.compression import decompress
from ...protocol.errors import CorruptData, ErrorCode, KafkaError, TooLarge
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import ConfigResourceType, MetadataImage
from .rules.client_instance import ClientInstance
from .rules.client_instances import ClientInstances
from .rules.client_series import ClientSeries
from .rules.subscriptions import ClientDetails, Selection, Subscription, read_subscription

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

    from .rules.otlp import Push

logger = logging.getLogger(__name__)

PUSHES_MAX: Final = 32
"""Being opened or waiting for it: 32 MiB with the default of `telemetry.max.bytes`."""
RESERVED_IDS: Final = frozenset({UUID(int=0), UUID(int=1)})
"""Kafka: `Uuid.RESERVED`."""


class TelemetryStatistics(Struct, frozen=True, kw_only=True):
    """Counts since start, but for `instances` and `series`, which are of now."""

    instances: int
    series: int
    pushes: int
    """Taken in."""
    unknown_subscriptions: int
    throttled: int
    too_large: int
    """Compressed or uncompressed."""
    unreadable: int
    dropped_points: int


class ClientTelemetry:
    """Owns both. It is a publisher of metadata and a source of metrics.

    A `connection` is any hashable value that no other connection has.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, monotonic_ms: Callable[[], int], *, telemetry_max_bytes: int
    ) -> None:
        self._loop = loop
        self._monotonic_ms = monotonic_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self._instances = ClientInstances()
        self._series = ClientSeries()
        # One at a time: they only take the processor from each other.
        self._opening = asyncio.Lock()
        self._pending = 0
        self._dropped = 0
        self._pushes = 0
        self._unknown_subscriptions = 0
        self._throttled = 0
        self._too_large = 0
        self._unreadable = 0

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if not any(resource.type == ConfigResourceType.CLIENT_METRICS for resource in delta.configs):
            return
        subscriptions: list[Subscription] = []
        for resource, values in image.configs.by_resource.items():
            if resource.type != ConfigResourceType.CLIENT_METRICS or not values:
                continue
            subscription = read_subscription(values)
            if subscription is None:
                logger.warning("Client metrics subscription has an unreadable match, no client has it: %s", resource)
            else:
                subscriptions.append(subscription)
        self._instances.subscribe(subscriptions)

    def statistics(self) -> TelemetryStatistics:
        self._series.forget(self._monotonic_ms())
        return TelemetryStatistics(
            instances=len(self._instances),
            series=len(self._series),
            pushes=self._pushes,
            unknown_subscriptions=self._unknown_subscriptions,
            throttled=self._throttled,
            too_large=self._too_large,
            unreadable=self._unreadable,
            dropped_points=self._dropped + self._series.dropped,
        )

    def has_instance(self, instance_id: UUID) -> bool:
        return instance_id in self._instances

    def disconnect(self, connection: Hashable) -> None:
        """The connection has ended: its instances are forgotten at once, their series soon."""
        for instance_id in self._instances.disconnect(connection):
            self._series.disconnect(instance_id, now_ms=self._monotonic_ms())

    def subscribe(self, client: ClientDetails, connection: Hashable) -> ClientInstance:
        """What the client is asked for. Raises KafkaError."""
        now_ms = self._monotonic_ms()
        instance = self._instances.use(client, connection, now_ms)
        try:
            instance.admit_get(now_ms)
        except KafkaError:
            self._throttled += 1
            raise
        instance.finish(ErrorCode.NONE)
        return instance

    async def push(
        self,
        client: ClientDetails,
        connection: Hashable,
        *,
        subscription_id: int,
        is_terminating: bool,
        compression: int,
        metrics: bytes,
    ) -> None:
        """Raises KafkaError."""
        if client.client_instance_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        now_ms = self._monotonic_ms()
        instance = self._instances.use(client, connection, now_ms)
        try:
            instance.admit_push(
                now_ms,
                subscription_id=subscription_id,
                is_terminating=is_terminating,
                compression=compression,
                size=len(metrics),
                size_max=self.telemetry_max_bytes,
            )
            if metrics and instance.selection.metrics:
                await self._take(instance, compression, metrics)
        except KafkaError as error:
            instance.finish(error.code)
            self._unknown_subscriptions += error.code is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
            self._throttled += error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
            self._too_large += error.code is ErrorCode.TELEMETRY_TOO_LARGE
            self._unreadable += error.code is ErrorCode.INVALID_RECORD
            raise
        instance.finish(ErrorCode.NONE)

    async def _take(self, instance: ClientInstance, compression: int, metrics: bytes) -> None:
        if self._pending >= PUSHES_MAX:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self._pending += 1
        try:
            async with self._opening:
                push = await self._loop.run_in_executor(
                    None, _open, metrics, compression, self.telemetry_max_bytes, instance.selection
                )
        except TooLarge as error:
            # Not INVALID_RECORD, after which clients push no more: this one may push fewer metrics.
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, str(error)) from error
        except CorruptData as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from error
        finally:
            self._pending -= 1
        self._pushes += 1
        self._dropped += push.dropped
        now_ms = self._monotonic_ms()
        self._series.push(
            instance.id, instance.client.client_id, push.points, now_ms=now_ms, expires_ms=instance.expires_ms
        )
        if not self._instances.is_known(instance):
            # Its connection ended while the push was being opened: a terminating client does not wait.
            self._series.disconnect(instance.id, now_ms=now_ms)

    def collect(self) -> Iterable[Family]:
        """The families of what clients have pushed."""
        # What writes the exposition has loaded it; a node without one is 9 MiB smaller.
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        self._series.forget(self._monotonic_ms())
        for family in self._series.families():
            made: Any = (CounterMetricFamily if family.is_counter else GaugeMetricFamily)(
                family.name, "Pushed by clients (KIP-714)."
            )
            for labels, pushed in family.series:
                made.add_sample(family.name, dict(labels), pushed)
            yield made


def _open(metrics: bytes, compression: int, size_max: int, selection: Selection) -> Push:
    """Raises CorruptData."""
    module = import_module(f"{__package__}.rules.otlp")
    push: Push = module.read_push(decompress(compression, metrics, size_max), selection.includes)
    return push
