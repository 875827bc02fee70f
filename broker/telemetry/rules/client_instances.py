"""The client instances that a broker knows, in a bounded cache with expiry. Kafka: `ClientMetricsManager`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from typing import Final
from uuid import UUID

from .client_instance import ClientInstance
from .subscriptions import ClientDetails, Subscription, select

INSTANCES_MAX: Final = 16_384
"""As in Apache Kafka. An instance that is forgotten early asks anew: a request more."""


class ClientInstances:
    """By instance id, the least recently used first."""

    def __init__(self, instances_max: int = INSTANCES_MAX) -> None:
        self._instances: OrderedDict[UUID, ClientInstance] = OrderedDict()
        # Ids by connection: most have one.
        self._by_connection: dict[Hashable, set[UUID]] = {}
        self._instances_max = instances_max
        self._subscriptions: tuple[Subscription, ...] = ()
        self._version = 0

    def __len__(self) -> int:
        return len(self._instances)

    def __contains__(self, instance_id: UUID) -> bool:
        return instance_id in self._instances

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Takes these in place of those before. Every client may ask at once for what is new."""
        self._subscriptions = tuple(subscriptions)
        self._version += 1

    def use(self, client: ClientDetails, connection: Hashable, now_ms: int) -> ClientInstance:
        """The instance of a request, made anew if its subscriptions have changed.

        An instance lives as long as its connection: one that comes by another connection has no past. A connection is
        any hashable value that no other has.
        """
        instance = self._instances.get(client.client_instance_id)
        if instance is not None:
            self._remove(instance)
        if (
            instance is None
            or instance.version != self._version
            or instance.connection != connection
            or instance.expires_ms <= now_ms
        ):
            instance = ClientInstance(
                client, select(self._subscriptions, client), version=self._version, connection=connection
            )
        instance.touch(now_ms)
        self._instances[instance.id] = instance
        self._by_connection.setdefault(connection, set()).add(instance.id)
        self._forget(now_ms)
        return instance

    def is_known(self, instance: ClientInstance) -> bool:
        """Whether its connection is open, and another instance has not taken its place."""
        return self._instances.get(instance.id) is instance

    def disconnect(self, connection: Hashable) -> Sequence[UUID]:
        """Forgets the instances whose latest request came by this connection; returns their ids."""
        ids = tuple(self._by_connection.pop(connection, ()))
        for instance_id in ids:
            del self._instances[instance_id]
        return ids

    def _remove(self, instance: ClientInstance) -> None:
        del self._instances[instance.id]
        ids = self._by_connection[instance.connection]
        ids.remove(instance.id)
        if not ids:
            del self._by_connection[instance.connection]

    def _forget(self, now_ms: int) -> None:
        while self._instances:
            oldest = next(iter(self._instances.values()))
            if oldest.expires_ms > now_ms and len(self._instances) <= self._instances_max:
                return
            self._remove(oldest)
