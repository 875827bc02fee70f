"""Quotas of replication follow the metadata."""

from uuid import UUID

from penstock.broker.configuration.node_config import load
from penstock.broker.configuration.topic_configs import ConfigResolver
from penstock.broker.replication.rules.replication_quota import ReplicationQuota
from penstock.broker.replication.rules.replication_throttles import ReplicationThrottles
from penstock.protocol.ids import ControllerEpoch, NodeId, TopicId
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, ConfigResourceType, MetadataImage
from penstock.quorum.metadata.records import ConfigRecord, MetadataRecord, RemoveTopicRecord, TopicRecord

TOPIC_ID = TopicId(UUID(int=1))


class World:
    """Broker 1."""

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self.configs = ConfigResolver(load({}))
        self.throttles = ReplicationThrottles(
            node_id=NodeId(1), in_effect=lambda: self.configs.in_effect, window_count=11, window_ms=1_000
        )
        self.publish(TopicRecord(name="t", topic_id=TOPIC_ID))

    def publish(self, *records: MetadataRecord) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(offset=self.image.offset + 1, epoch=ControllerEpoch(1), timestamp_ms=0)
        self.configs.publish(delta, self.image)
        self.throttles.publish(delta, self.image)

    def set(self, kind: ConfigResourceType, name: str, key: str, value: str | None) -> None:
        self.publish(ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))


def is_exceeded_by(quota: ReplicationQuota, size: int) -> bool:
    """For one window."""
    quota.record(size, 0)
    is_exceeded = quota.is_exceeded(0)
    quota.allowed_ms(1_000_000)
    return is_exceeded


def test_what_the_tool_for_reassignments_sets_and_removes_is_obeyed() -> None:
    world = World()
    leader, follower = world.throttles.leader, world.throttles.follower
    for role in ("leader", "follower"):
        world.set(ConfigResourceType.TOPIC, "t", f"{role}.replication.throttled.replicas", "0:1,1:2")
        world.set(ConfigResourceType.BROKER, "1", f"{role}.replication.throttled.rate", "500")
    for quota in (leader, follower):
        assert (quota.is_set, quota.is_throttled("t", 0), quota.is_throttled("t", 1)) == (True, True, False)
        assert is_exceeded_by(quota, 501)
    world.set(ConfigResourceType.BROKER, "1", "leader.replication.throttled.rate", None)
    assert (leader.is_set, follower.is_set) == (False, True)
    world.set(ConfigResourceType.TOPIC, "t", "follower.replication.throttled.replicas", None)
    assert not follower.is_set


def test_a_rate_for_all_brokers_holds_where_none_is_set_for_this_one() -> None:
    world = World()
    world.set(ConfigResourceType.BROKER, "", "leader.replication.throttled.rate", "100")
    assert is_exceeded_by(world.throttles.leader, 101)
    world.set(ConfigResourceType.BROKER, "1", "leader.replication.throttled.rate", "200")
    assert not is_exceeded_by(world.throttles.leader, 101)


def test_a_deleted_topic_is_not_throttled_any_more() -> None:
    world = World()
    world.set(ConfigResourceType.TOPIC, "t", "leader.replication.throttled.replicas", "*")
    world.publish(RemoveTopicRecord(topic_id=TOPIC_ID))
    assert not world.throttles.leader.is_throttled("t", 0)
