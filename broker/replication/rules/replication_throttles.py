"""The quotas of replication on this node, as the metadata say: rates of the broker, and which replicas of which topics.

The keys are those that kafka-reassign-partitions sets and removes: `leader.replication.throttled.rate` and
`follower.replication.throttled.rate` of brokers, `leader.replication.throttled.replicas` and
`follower.replication.throttled.replicas` of topics.
"""

from collections.abc import Callable, Mapping
from typing import Final

from ....protocol.ids import NodeId
from ....quorum.metadata.delta import MetadataDelta
from ....quorum.metadata.image import ConfigResourceType, MetadataImage
from .replication_quota import UNLIMITED, ReplicationQuota

_RATE: Final = "{}.replication.throttled.rate"
_REPLICAS: Final = "{}.replication.throttled.replicas"


class ReplicationThrottles:
    """A MetadataPublisher, behind the configs. `leader` is for what is sent to followers, `follower` for what this node
    fetches."""

    def __init__(
        self, *, node_id: NodeId, in_effect: Callable[[], Mapping[str, str]], window_count: int, window_ms: int
    ) -> None:
        """`in_effect` tells the properties of this broker."""
        self._node_id = node_id
        self._in_effect = in_effect
        self.leader = ReplicationQuota(window_count=window_count, window_ms=window_ms)
        self.follower = ReplicationQuota(window_count=window_count, window_ms=window_ms)

    def publish(self, delta: MetadataDelta, _image: MetadataImage) -> None:
        for role, quota in (("leader", self.leader), ("follower", self.follower)):
            if any(resource.type == ConfigResourceType.BROKER for resource in delta.configs):
                quota.limit(int(self._in_effect().get(_RATE.format(role), UNLIMITED)))
            for resource, values in delta.configs.items():
                if resource.type == ConfigResourceType.TOPIC:
                    quota.throttle(resource.name, values.get(_REPLICAS.format(role), ""), self._node_id)
