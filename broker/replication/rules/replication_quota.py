"""How many bytes a second replication may take for the replicas that an operator wants slowed down (KIP-73).

Kafka: `ReplicationQuotaManager`.

A rule without a clock: one for what leaders send, one for what followers fetch. The rate is measured over the last
windows, as Apache Kafka measures it: the bytes in them by the time since the oldest began, at least one window. Bytes
count when they have been moved, so one answer may exceed the quota; from there on replicas that are not in sync wait
until the rate has fallen again. Those in sync always pass, or a quota would take replicas out of the ISR; their bytes
count all the same.
"""

from collections import deque
from typing import Final

from ....protocol.ids import NodeId

UNLIMITED: Final = 2**63 - 1
ALL_PARTITIONS: Final = "*"


class ReplicationQuota:
    __slots__ = ("_byte_rate_max", "_partitions", "_samples", "_window_count", "_window_ms")

    def __init__(self, *, window_count: int, window_ms: int) -> None:
        """Kafka's `replication.quota.window.num` and `replication.quota.window.size.seconds`."""
        self._window_count = window_count
        self._window_ms = window_ms
        self._byte_rate_max = UNLIMITED
        # Which partitions of a topic are throttled here; None: all.
        self._partitions: dict[str, frozenset[int] | None] = {}
        # When each window began, and the bytes in it.
        self._samples: deque[tuple[int, int]] = deque()

    @property
    def is_set(self) -> bool:
        """Whether any partition may have to wait."""
        return self._byte_rate_max < UNLIMITED and bool(self._partitions)

    def limit(self, byte_rate_max: int) -> None:
        """Bytes a second from now on; what was moved before counts."""
        self._byte_rate_max = byte_rate_max

    def throttle(self, topic: str, replicas: str, node_id: NodeId) -> None:
        """`replicas` is what the topic's config says: nothing, `*`, or `partition:broker,…`; it has been validated."""
        replicas = replicas.strip()
        if replicas == ALL_PARTITIONS:
            self._partitions[topic] = None
            return
        pairs = [pair.split(":") for pair in replicas.split(",") if pair]
        partitions = frozenset(int(partition) for partition, broker_id in pairs if int(broker_id) == node_id)
        if partitions:
            self._partitions[topic] = partitions
        else:
            self._partitions.pop(topic, None)

    def is_throttled(self, topic: str, partition: int) -> bool:
        if topic not in self._partitions:
            return False
        partitions = self._partitions[topic]
        return partitions is None or partition in partitions

    def record(self, size: int, now_ms: int) -> None:
        """So many bytes of throttled partitions were moved."""
        samples = self._samples
        if samples and now_ms < samples[-1][0] + self._window_ms:
            begun_ms, total = samples[-1]
            samples[-1] = begun_ms, total + size
        else:
            self._forget_old(now_ms)
            samples.append((now_ms, size))

    def is_exceeded(self, now_ms: int) -> bool:
        return self.allowed_ms(now_ms) > now_ms

    def allowed_ms(self, now_ms: int) -> int:
        """When the rate will have fallen to the quota, if nothing is moved meanwhile; `now_ms` when it has."""
        self._forget_old(now_ms)
        samples = list(self._samples)
        while samples:
            begun_ms = samples[0][0]
            # So long what is in the windows takes at this rate.
            needed_ms = sum(size for _, size in samples) * 1000 // max(self._byte_rate_max, 1)
            allowed_ms = now_ms if needed_ms <= self._window_ms else max(begun_ms + needed_ms, now_ms)
            forgotten_ms = begun_ms + self._window_count * self._window_ms
            if allowed_ms < forgotten_ms:
                return allowed_ms
            # The oldest is forgotten before.
            now_ms = max(now_ms, forgotten_ms)
            del samples[0]
        return now_ms

    def _forget_old(self, now_ms: int) -> None:
        samples = self._samples
        while samples and samples[0][0] + self._window_count * self._window_ms <= now_ms:
            samples.popleft()
