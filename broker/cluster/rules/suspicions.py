"""Which brokers may be gone, for as long as the metadata do not know: rules without clock or sockets.

The other side of a broker's connections closed: its process may have ended, and others will lead what it leads once the
controller has decided so. Until then no client is sent there.

| a broker is   | becomes       | by                                                                                  |
|---------------|---------------|-------------------------------------------------------------------------------------|
| not suspected | suspected     | its side closed a connection, while the metadata say that it may lead               |
| suspected     | not suspected | the metadata: it is fenced, shuts down, is another process, or no broker any more   |
| suspected     | not suspected | it is alive: it keeps a connection that it took                                     |
| suspected     | not suspected | the time is over                                                                    |
"""

from __future__ import annotations

from collections.abc import Iterable

from ....protocol.ids import BrokerEpoch, NodeId
from ....quorum.metadata.image import MetadataImage


class Suspicions:
    """Of one broker against the others."""

    def __init__(self, node_id: NodeId, *, hold_ms: int) -> None:
        """`node_id` is this broker's; a suspicion lasts `hold_ms` at most, none begins where that is 0."""
        self.hold_ms = hold_ms
        self._node_id = node_id
        self._epochs: dict[NodeId, BrokerEpoch] = {}
        self._until_ms: dict[NodeId, int] = {}
        self.count = 0
        """Suspicions that have begun, since start."""

    def __bool__(self) -> bool:
        """Whether any broker is suspected."""
        return bool(self._until_ms)

    def __contains__(self, broker_id: object) -> bool:
        return broker_id in self._until_ms

    @property
    def next_end_ms(self) -> int | None:
        """When the first of them ends by its time; None without any."""
        return min(self._until_ms.values(), default=None)

    def includes_any(self, broker_ids: Iterable[int]) -> bool:
        return not self._until_ms.keys().isdisjoint(broker_ids)

    def on_closed(self, broker_id: NodeId, image: MetadataImage, now_ms: int) -> bool:
        """Its side closed a connection. Returns whether it is suspected from now on, and was not before.

        A further connection that closes makes no suspicion last longer.
        """
        broker = image.brokers.get(broker_id)
        if broker is None or not broker.is_active or broker_id in self._until_ms:
            return False
        if broker_id == self._node_id or self.hold_ms == 0:
            return False
        self._epochs[broker_id] = broker.epoch
        self._until_ms[broker_id] = now_ms + self.hold_ms
        self.count += 1
        return True

    def on_alive(self, broker_id: NodeId) -> bool:
        """Returns whether that ends a suspicion; so do the others."""
        return self._end([broker_id])

    def on_image(self, image: MetadataImage) -> bool:
        return self._end([broker_id for broker_id in self._until_ms if not self._may_lead(broker_id, image)])

    def on_time(self, now_ms: int) -> bool:
        return self._end([broker_id for broker_id, until_ms in self._until_ms.items() if until_ms <= now_ms])

    def _may_lead(self, broker_id: NodeId, image: MetadataImage) -> bool:
        broker = image.brokers.get(broker_id)
        return broker is not None and broker.is_active and broker.epoch == self._epochs[broker_id]

    def _end(self, broker_ids: Iterable[NodeId]) -> bool:
        has_ended = False
        for broker_id in broker_ids:
            if self._until_ms.pop(broker_id, None) is not None:
                del self._epochs[broker_id]
                has_ended = True
        return has_ended
