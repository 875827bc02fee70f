"""The quotas of this node's clients, as the metadata say.

Kafka: `ClientQuotaManager`, `ClientRequestQuotaManager`, `ControllerMutationQuotaManager`.
Each connection keeps the quotas of its client in its context. They are looked for when its principal or its client id
changes, and before its next request when the metadata change; a client without a quota has None there, and its requests
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
        time_s: Callable[[], float],
    ) -> None:
        """`quota.window.num`, and `quota.window.size.seconds` in milliseconds; then `controller.quota.window.num` and
        `.size.seconds`. `time_s` is the loop's clock."""
        self._sample_count = sample_count
        self._window_ms = window_ms
        self.time_s = time_s
        self._quotas: Mapping[QuotaEntity, Quotas] = {}
        self._is_set = False
        self.change_count = 0
        """Of the metadata's quotas, since the start."""
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

    def now_ms(self) -> int:
        return int(self.time_s() * 1000)

    def attach(self, on_change: Callable[[], None], rates: ConnectionRates | None = None) -> None:
        """`on_change` is called when `find` may answer anew; `rates`, if any, have the quotas of addresses."""
        self._listeners.append((on_change, rates))
        if rates is not None:
            rates.set_quotas(address_quotas(self._quotas))

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.client_quotas:
            self.set_quotas(image.client_quotas)

    def set_quotas(self, quotas: Mapping[QuotaEntity, Quotas]) -> None:
        """These hold from now on."""
        was_set = self._is_set
        self._quotas = quotas
        self.change_count += 1
        self._is_set = has_quota_of_clients(quotas)
        self._clients.clear()
        addresses = address_quotas(quotas)
        for on_change, rates in self._listeners:
            if rates is not None:
                rates.set_quotas(addresses)
            if was_set or self._is_set:
                on_change()

    def find(self, context: RequestContext) -> LimitedClient | None:
        """The quotas of a client; None where it has none."""
        if not self._is_set or context.node_id is not None:
            return None
        key = context.principal, context.client_id
        if key in self._clients:
            return self._clients[key]
        if len(self._clients) >= CLIENTS_MAX:
            self._clients.clear()
        applied = self.applied_to(*key)
        client = LimitedClient(self, key, applied) if applied else None
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

    def applied_to(self, principal: str, client_id: str | None) -> Mapping[str, AppliedQuota]:
        """What the metadata say of a client now, by the keys of quotas."""
        found = {key: self._applied(key, principal, client_id) for key in self.sensors}
        return {key: quota for key, quota in found.items() if quota is not None}

    def _applied(self, key: str, principal: str, client_id: str | None) -> AppliedQuota | None:
        # The quota's user is the name of the principal, whatever its type.
        return applied_quota(self._quotas, key, principal.partition(":")[2], client_id)

    def sensor(self, key: str, quota: AppliedQuota) -> RateSensor:
        return self.sensors[key].sensor(quota.clients, quota.bound, self.now_ms())

    def is_beyond(self, bound: float, size_bytes: int, left: float) -> bool:
        """Whether a response is larger than what is left and one sample, though it would fit into the window of all
        samples but the one that has just begun."""
        sample_bytes = bound * self._window_ms / 1000
        return left + sample_bytes < size_bytes <= (self._sample_count - 1) * sample_bytes


class LimitedClient:
    """The quotas of one user with one client id: a `ClientQuota` of its connections.

    Of its changes of topics it counts none: the controller tells the throttle time. A request may have begun before the
    quotas changed: it is answered by those that hold then.
    """

    __slots__ = (
        "_applied",
        "_change_count",
        "_client",
        "_fetch",
        "_handled_s",
        "_produce",
        "_quotas",
        "_request",
        "_time_s",
        "is_measured",
    )

    def __init__(
        self, quotas: ClientQuotas, client: tuple[str, str | None], applied: Mapping[str, AppliedQuota]
    ) -> None:
        """`client` is its principal and client id; `applied` by the keys of quotas."""
        self._quotas = quotas
        self._client = client
        self._time_s = quotas.time_s
        # Of requests since the last response, which counts it.
        self._handled_s = 0.0
        self._apply(applied)

    def _apply(self, applied: Mapping[str, AppliedQuota]) -> None:
        self._change_count = self._quotas.change_count
        self._applied = applied
        self.is_measured = REQUEST_PERCENTAGE in applied
        self._produce = self._sensor(PRODUCER_BYTE_RATE)
        self._fetch = self._sensor(CONSUMER_BYTE_RATE)
        self._request = self._sensor(REQUEST_PERCENTAGE)

    def on_handled(self, elapsed_s: float) -> None:
        self._handled_s += elapsed_s

    def on_produced(self, size_bytes: int) -> int:
        if self._change_count != self._quotas.change_count:
            self._renew()
        now_ms = int(self._time_s() * 1000)
        produce, request = self._produce, self._request
        bandwidth_ms = request_ms = 0
        if produce is not None:
            bandwidth_ms = produce.use(size_bytes, now_ms)
            if bandwidth_ms < 0:
                produce = self._produce = self._sensor_of(PRODUCER_BYTE_RATE)
                bandwidth_ms = produce.use(size_bytes, now_ms)
        if request is not None:
            request_ms = self._request_throttle_ms(request, now_ms)
        return self._longer(produce, bandwidth_ms, request_ms, now_ms) if bandwidth_ms or request_ms else 0

    def on_unanswered(self, size_bytes: int) -> int:
        if self._change_count != self._quotas.change_count:
            self._renew()
        produce = self._produce
        if produce is None:
            return 0
        if produce.is_dropped:
            produce = self._produce = self._sensor_of(PRODUCER_BYTE_RATE)
        now_ms = int(self._time_s() * 1000)
        bandwidth_ms = produce.use(size_bytes, now_ms)
        return self._longer(produce, bandwidth_ms, 0, now_ms) if bandwidth_ms else 0

    def fetch_bytes_max(self) -> int:
        if self._fetch is None:
            return UNLIMITED_BYTES
        return min(max(int(self._live_fetch(self._fetch).left(int(self._time_s() * 1000))), 1), UNLIMITED_BYTES)

    def on_fetched(self, size_bytes: int) -> int:
        if self._change_count != self._quotas.change_count:
            self._renew()
        now_ms = int(self._time_s() * 1000)
        request_ms = 0 if self._request is None else self._request_throttle_ms(self._request, now_ms)
        fetch = self._fetch
        bandwidth_ms = 0
        if fetch is not None:
            fetch = self._live_fetch(fetch)
            left = fetch.left(now_ms)
            # The first batch of a response may be larger than what is left, by one sample, or by any size if it is
            # larger than all of the window. It counts, and what follows waits for it.
            if left < 0:
                bandwidth_ms = max(fetch.throttle_time_ms(fetch.bound, now_ms), 1)
            elif self._quotas.is_beyond(fetch.bound, size_bytes, left):
                bandwidth_ms = max(fetch.use(size_bytes, now_ms), 1)
                fetch.record(-size_bytes, now_ms)
            elif not request_ms:
                # With a throttle time the response goes out without records.
                fetch.record(size_bytes, now_ms)
        return self._longer(fetch, bandwidth_ms, request_ms, now_ms) if bandwidth_ms or request_ms else 0

    def on_answered(self, throttle_time_ms: int) -> int:
        if self._change_count != self._quotas.change_count:
            self._renew()
        if self._request is None:
            return throttle_time_ms
        now_ms = int(self._time_s() * 1000)
        request_ms = self._request_throttle_ms(self._request, now_ms)
        return max(throttle_time_ms, self._longer(None, 0, request_ms, now_ms) if request_ms else 0)

    def _request_throttle_ms(self, request: RateSensor, now_ms: int) -> int:
        if request.is_dropped:
            request = self._request = self._sensor_of(REQUEST_PERCENTAGE)
        handled_s, self._handled_s = self._handled_s, 0.0
        return min(request.use(handled_s * PERCENT, now_ms), self._quotas.max_request_throttle_ms)

    def _live_fetch(self, fetch: RateSensor) -> RateSensor:
        if fetch.is_dropped:
            fetch = self._fetch = self._sensor_of(CONSUMER_BYTE_RATE)
        return fetch

    def _longer(self, bandwidth: RateSensor | None, bandwidth_ms: int, request_ms: int, now_ms: int) -> int:
        sensor, throttle_time_ms = (
            (bandwidth, bandwidth_ms) if bandwidth_ms > request_ms else (self._request, request_ms)
        )
        assert sensor is not None, "it throttles"
        sensor.note_throttle(throttle_time_ms, now_ms)
        return throttle_time_ms

    def _renew(self) -> None:
        self._apply(self._quotas.applied_to(*self._client))

    def _sensor(self, key: str) -> RateSensor | None:
        return self._sensor_of(key) if key in self._applied else None

    def _sensor_of(self, key: str) -> RateSensor:
        return self._quotas.sensor(key, self._applied[key])
