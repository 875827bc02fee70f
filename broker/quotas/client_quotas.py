"""The quotas of this node's clients, as the metadata say.

Kafka: `ClientQuotaManager`, `ClientRequestQuotaManager`, `ControllerMutationQuotaManager`.
Each connection keeps the quotas of its client in its context. They are looked for when its principal or its client id
changes, and for all connections when the metadata change; a client without a quota has None there, and its requests
take no other path than without this module. Quotas are of each node by itself, and other nodes of the cluster have
none; changes of topics are counted by the active controller, for the clients of all brokers, and a new one begins anew.

Request time (KIP-124) is the time that the event loop spends in the handler of a request until the handler returns or
waits, as `perf_counter` measures it. What follows a wait is not measured. It counts from the response after it, as
Apache Kafka's network threads' time does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import MetadataImage
from ...quorum.metadata.quota_precedence import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    AppliedQuota,
    QuotaClients,
    address_quotas,
    applied_quota,
    has_quota_of_clients,
)
from ...quorum.metadata.security_image import QuotaEntity, Quotas
from ...quorum.permissions.requester import Requester
from ..network.request import RequestContext
from ..network.rules.connection_rates import ConnectionRates
from ..timing.rules.rate_sensors import RateSensor, RateSensors
from .counted_mutations import CountedMutations

UNLIMITED_BYTES: Final = 2**31 - 1
CLIENTS_MAX: Final = 10_000
"""Decisions that are remembered; with one more all are made again when they are needed."""
PERCENT: Final = 100.0


class ClientQuotas:
    """A MetadataPublisher."""

    def __init__(
        self,
        *,
        sample_count: int,
        window_ms: int,
        mutation_sample_count: int = 11,
        mutation_window_ms: int = 1_000,
        monotonic_ms: Callable[[], int],
    ) -> None:
        """`quota.window.num`, and `quota.window.size.seconds` in milliseconds; then `controller.quota.window.num` and
        `.size.seconds`."""
        self._sample_count = sample_count
        self._window_ms = window_ms
        self.now_ms = monotonic_ms
        self._quotas: Mapping[QuotaEntity, Quotas] = {}
        self._is_set = False
        self._listeners: list[tuple[Callable[[], None], ConnectionRates | None]] = []
        self._clients: dict[tuple[str, str | None], LimitedClient | None] = {}
        self.sensors: Mapping[str, RateSensors[QuotaClients]] = {
            key: RateSensors(sample_count=sample_count, window_ms=window_ms)
            for key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE)
        } | {CONTROLLER_MUTATION_RATE: RateSensors(sample_count=mutation_sample_count, window_ms=mutation_window_ms)}
        """By the keys of quotas."""

    @property
    def max_request_throttle_ms(self) -> int:
        """Of one response, because of request time. Kafka: ClientRequestQuotaManager.maxThrottleTimeMs."""
        return self._window_ms

    def attach(self, refresh: Callable[[], None], rates: ConnectionRates | None = None) -> None:
        """`refresh` is called when `find` may answer anew; `rates`, if any, have the quotas of addresses."""
        self._listeners.append((refresh, rates))
        if rates is not None:
            rates.set_quotas(address_quotas(self._quotas))

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.client_quotas:
            self.set_quotas(image.client_quotas)

    def set_quotas(self, quotas: Mapping[QuotaEntity, Quotas]) -> None:
        """These hold from now on."""
        was_set = self._is_set
        self._quotas = quotas
        self._is_set = has_quota_of_clients(quotas)
        self._clients.clear()
        addresses = address_quotas(quotas)
        for refresh, rates in self._listeners:
            if rates is not None:
                rates.set_quotas(addresses)
            if was_set or self._is_set:
                refresh()

    def find(self, context: RequestContext) -> LimitedClient | None:
        """The quotas of a client; None where it has none."""
        if not self._is_set or context.node_id is not None:
            return None
        key = context.principal, context.client_id
        if key in self._clients:
            return self._clients[key]
        if len(self._clients) >= CLIENTS_MAX:
            self._clients.clear()
        quotas = {quota_key: self._applied(quota_key, *key) for quota_key in self.sensors}
        client = LimitedClient(self, quotas) if any(quota is not None for quota in quotas.values()) else None
        self._clients[key] = client
        return client

    def find_mutations(self, requester: Requester) -> CountedMutations | None:
        """For one request by which a client changes topics; None for a client without such a quota."""
        if not self._is_set:
            return None
        quota = self._applied(CONTROLLER_MUTATION_RATE, requester.principal, requester.client_id)
        if quota is None:
            return None
        sensor = self.sensor(CONTROLLER_MUTATION_RATE, quota)
        return CountedMutations(sensor, self.now_ms, is_strict=requester.is_strict)

    def _applied(self, key: str, principal: str, client_id: str | None) -> AppliedQuota | None:
        # The quota's user is the name of the principal, whatever its type.
        return applied_quota(self._quotas, key, principal.partition(":")[2], client_id)

    def sensor(self, key: str, quota: AppliedQuota) -> RateSensor:
        return self.sensors[key].sensor(quota.clients, quota.bound, self.now_ms())

    @property
    def sample_s(self) -> float:
        return self._window_ms / 1000

    @property
    def window_s(self) -> float:
        """Of all samples but the one that has just begun."""
        return (self._sample_count - 1) * self._window_ms / 1000


class _Limit:
    """One quota of a client, and its sensor."""

    __slots__ = ("_key", "_quota", "_quotas", "_sensor")

    def __init__(self, quotas: ClientQuotas, key: str, quota: AppliedQuota) -> None:
        self._quotas = quotas
        self._key = key
        self._quota = quota
        self._sensor = quotas.sensor(key, quota)

    @property
    def sensor(self) -> RateSensor:
        if self._sensor.is_dropped:
            self._sensor = self._quotas.sensor(self._key, self._quota)
        return self._sensor

    def use(self, value: float, now_ms: int) -> int:
        """Counts; returns the throttle time."""
        sensor = self._sensor
        return sensor.use(value, now_ms) if not sensor.is_dropped else self.sensor.use(value, now_ms)


class LimitedClient:
    """The quotas of one user with one client id: a `ClientQuota` of its connections.

    Of its changes of topics it counts none: the controller tells the throttle time.
    """

    __slots__ = (
        "_fetch",
        "_handled_s",
        "_now_ms",
        "_produce",
        "_request",
        "_request_ms_max",
        "_sample_s",
        "_window_s",
        "is_measured",
    )

    def __init__(self, quotas: ClientQuotas, applied: Mapping[str, AppliedQuota | None]) -> None:
        limits = {
            key: None if quota is None or key == CONTROLLER_MUTATION_RATE else _Limit(quotas, key, quota)
            for key, quota in applied.items()
        }
        self._now_ms = quotas.now_ms
        self._produce = limits[PRODUCER_BYTE_RATE]
        self._fetch = limits[CONSUMER_BYTE_RATE]
        self._request = limits[REQUEST_PERCENTAGE]
        self._request_ms_max = quotas.max_request_throttle_ms
        self.is_measured = self._request is not None
        # Of requests since the last response, which counts it.
        self._handled_s = 0.0
        self._sample_s = quotas.sample_s
        self._window_s = quotas.window_s

    def on_handled(self, elapsed_s: float) -> None:
        self._handled_s += elapsed_s

    def on_produced(self, size_bytes: int, *, is_answered: bool) -> int:
        now_ms = self._now_ms()
        produce, request = self._produce, self._request
        bandwidth_ms = 0 if produce is None else produce.use(size_bytes, now_ms)
        request_ms = self._request_throttle_ms(request, now_ms) if is_answered and request is not None else 0
        return self._longer(produce, bandwidth_ms, request_ms, now_ms) if bandwidth_ms or request_ms else 0

    def fetch_bytes_max(self) -> int:
        if self._fetch is None:
            return UNLIMITED_BYTES
        return min(max(int(self._fetch.sensor.left(self._now_ms())), 1), UNLIMITED_BYTES)

    def on_fetched(self, size_bytes: int) -> int:
        now_ms = self._now_ms()
        fetch, request = self._fetch, self._request
        request_ms = 0 if request is None else self._request_throttle_ms(request, now_ms)
        bandwidth_ms = 0
        if fetch is not None:
            sensor = fetch.sensor
            left = sensor.left(now_ms)
            # The first batch of a response may be larger than what is left, by one sample, or by any size if it is
            # larger than all of the window. It counts, and what follows waits for it.
            if left < 0:
                bandwidth_ms = max(sensor.throttle_time_ms(sensor.bound, now_ms), 1)
            elif size_bytes > left + sensor.bound * self._sample_s and size_bytes <= sensor.bound * self._window_s:
                bandwidth_ms = max(sensor.use(size_bytes, now_ms), 1)
                sensor.record(-size_bytes, now_ms)
            elif not request_ms:
                # With a throttle time the response goes out without records.
                sensor.record(size_bytes, now_ms)
        return self._longer(fetch, bandwidth_ms, request_ms, now_ms) if bandwidth_ms or request_ms else 0

    def on_answered(self, throttle_time_ms: int) -> int:
        request = self._request
        if request is None:
            return throttle_time_ms
        now_ms = self._now_ms()
        request_ms = self._request_throttle_ms(request, now_ms)
        return max(throttle_time_ms, self._longer(None, 0, request_ms, now_ms) if request_ms else 0)

    def _request_throttle_ms(self, request: _Limit, now_ms: int) -> int:
        handled_s, self._handled_s = self._handled_s, 0.0
        throttle_time_ms = request.use(handled_s * PERCENT, now_ms)
        return min(throttle_time_ms, self._request_ms_max)

    def _longer(self, bandwidth: _Limit | None, bandwidth_ms: int, request_ms: int, now_ms: int) -> int:
        limit, throttle_time_ms = (
            (bandwidth, bandwidth_ms) if bandwidth_ms > request_ms else (self._request, request_ms)
        )
        assert limit is not None, "it throttles"
        limit.sensor.note_throttle(throttle_time_ms, now_ms)
        return throttle_time_ms
