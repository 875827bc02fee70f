"""Brokers that were fenced a moment ago: Metadata still lists them (decision 29).

A client lets go of a broker that its metadata do not list any more. librdkafka (2.16) that lets go of the former leader
in the answer that names the next one loses the change of leaders with it half of the time, and asks again a second
later. By two seconds it has asked again. franz-go, which asks less often, sends requests to a coordinator that has gone
for as long as that is listed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ....quorum.metadata.delta import MetadataDelta
from ....quorum.metadata.image import EMPTY_IMAGE, MetadataImage

LISTED_MS: Final = 2_000
"""Apache Kafka lists a broker whose process ended until its session ends."""
NO_DEPARTURES: Final[frozenset[int]] = frozenset()


class RecentDepartures:
    """A publisher of a broker that is unfenced: what it is told before is of the past.

    A broker that says that it goes, by a controlled shutdown, is not among them.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._image = EMPTY_IMAGE
        self._until_ms: dict[int, int] = {}

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        before, self._image = self._image, image
        if image.brokers is before.brokers:
            return
        for broker_id, broker in before.brokers.items():
            now = image.brokers.get(broker_id)
            if now is None or not now.is_fenced:
                self._until_ms.pop(broker_id, None)
            elif broker.is_active and not now.in_controlled_shutdown:
                self._until_ms[broker_id] = self._now_ms() + LISTED_MS

    @property
    def broker_ids(self) -> frozenset[int]:
        """Of this moment."""
        if not self._until_ms:
            return NO_DEPARTURES
        now_ms = self._now_ms()
        self._until_ms = {broker_id: until_ms for broker_id, until_ms in self._until_ms.items() if until_ms > now_ms}
        return frozenset(self._until_ms)
