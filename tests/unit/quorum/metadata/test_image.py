"""However an image comes about, it is the same: replay, snapshot and replay, delta by delta, and from nothing."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typed_ids import node_ids

from penstock.protocol.ids import BrokerEpoch, ControllerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.protocol.structs import replace
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, ConfigResource, MetadataImage
from penstock.quorum.metadata.loader import MetadataLoader
from penstock.quorum.metadata.publishers import Publishers
from penstock.quorum.metadata.record_codec import encode_entry, encode_record
from penstock.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClusterRecord,
    ConfigRecord,
    Endpoint,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    SupportedFeature,
    TopicRecord,
    UnregisterBrokerRecord,
)
from penstock.quorum.metadata.security_records import (
    AccessControlEntryRecord,
    ClientQuotaEntity,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from penstock.quorum.metadata.snapshot_records import RECORDS_PER_CHUNK, image_chunks, image_from_chunks, image_records
from penstock.quorum.metadata.topics_delta import ReplayError

NAMES = ("a", "a.b", "a_b", "b.c.d", "b_c_d", "x")


class History:
    """Random records that fit what was written before them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.image = EMPTY_IMAGE
        self.next_topic = 1

    def entry(self) -> list[MetadataRecord]:
        """Return the records of one entry, and take them in."""
        delta = MetadataDelta(self.image)
        records: list[MetadataRecord] = []
        for _ in range(self.random.randrange(1, 5)):
            record = self._record(
                self.image if not records else delta.apply(offset=0, epoch=ControllerEpoch(0), timestamp_ms=0)
            )
            if record is not None:
                delta.replay(record)
                records.append(record)
        self.image = delta.apply(offset=self.image.offset + 1, epoch=ControllerEpoch(1), timestamp_ms=5)
        return records

    def _record(self, image: MetadataImage) -> MetadataRecord | None:
        random = self.random
        topics = sorted(image.topics.by_id.values(), key=lambda topic: topic.name)
        brokers = sorted(image.brokers)
        kind = random.randrange(13)
        if kind == 0:
            free = [name for name in NAMES if name not in image.topics.by_name]
            self.next_topic += 1
            return TopicRecord(name=random.choice(free), topic_id=TopicId(UUID(int=self.next_topic))) if free else None
        if kind in (1, 2, 3) and topics:
            topic = random.choice(topics)
            if random.random() < 0.5 or not topic.partitions:
                return self._partition(topic.topic_id, len(topic.partitions))
            return PartitionChangeRecord(
                topic_id=topic.topic_id,
                partition_id=random.randrange(len(topic.partitions)),
                isr=random.choice([None, (), node_ids(1), node_ids(1, 2)]),
                leader=NodeId(random.choice([-2, -1, 1, 2])),
                elr=random.choice([None, (), node_ids(2)]),
                last_known_elr=random.choice([None, (), node_ids(1)]),
                leader_recovery_state=random.choice([-1, 0, 1]),
                directories=random.choice([None, (UUID(int=200), UUID(int=201))]),
            )
        if kind == 4 and topics:
            return RemoveTopicRecord(topic_id=random.choice(topics).topic_id)
        if kind == 5:
            name = random.choice(["retention.ms", "cleanup.policy"])
            resource = random.choice([(2, random.choice(NAMES)), (4, ""), (4, "1"), (32, "g")])
            return ConfigRecord(
                resource_type=resource[0], resource_name=resource[1], name=name, value=random.choice([None, "1", "2"])
            )
        if kind == 6:
            return self._registration(image.offset + random.randrange(9))
        if kind == 7 and brokers:
            broker = image.brokers[random.choice(brokers)]
            if random.random() < 0.3:
                return UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
            return BrokerRegistrationChangeRecord(
                broker_id=broker.id,
                broker_epoch=broker.epoch,
                is_fenced=random.choice([None, True, False]),
                in_controlled_shutdown=random.choice([None, True, False]),
                log_dirs=random.choice([None, (), (UUID(int=200),)]),
            )
        if kind == 8:
            return FeatureLevelRecord(name=random.choice(["f", "g"]), feature_level=random.randrange(3))
        if kind == 9:
            if random.random() < 0.5:
                return ClusterRecord(cluster_id="c")
            return ProducerIdsRecord(
                broker_id=NodeId(1), broker_epoch=BrokerEpoch(1), next_producer_id=image.next_producer_id + 1_000
            )
        if kind in (10, 11):
            return self._acl_record(image)
        if kind == 12:
            return self._record_of_clients(image)
        return None

    def _acl_record(self, image: MetadataImage) -> MetadataRecord:
        random = self.random
        present = sorted(image.acls.by_id)
        if present and random.random() < 0.4:
            return RemoveAccessControlEntryRecord(id=random.choice(present))
        self.next_topic += 1
        return AccessControlEntryRecord(
            id=UUID(int=self.next_topic),
            resource_type=random.choice([2, 3]),
            resource_name=random.choice(["a", "ab", "*", "b.c"]),
            pattern_type=random.choice([3, 4]),
            principal="User:alice",
            # No two ACLs are the same, as the controller sees to it.
            host=f"10.0.0.{self.next_topic}",
            operation=random.choice([3, 4]),
            permission_type=random.choice([2, 3]),
        )

    def _record_of_clients(self, image: MetadataImage) -> MetadataRecord:
        random = self.random
        users = sorted(image.scram_credentials)
        tokens = sorted(image.delegation_tokens)
        match random.randrange(5):
            case 0 if users:
                return RemoveUserScramCredentialRecord(**random.choice(users)._asdict())
            case 1 if tokens:
                return RemoveDelegationTokenRecord(token_id=random.choice(tokens))
            case 2:
                return DelegationTokenRecord(
                    token_id=random.choice(["t1", "t2"]),
                    owner="User:alice",
                    requester="User:bob",
                    issue_timestamp=1,
                    max_timestamp=random.randrange(5),
                    expiration_timestamp=2,
                    renewers=random.choice([(), ("User:carol",)]),
                )
            case 3:
                return UserScramCredentialRecord(
                    name=random.choice("ab"),
                    mechanism=random.choice([1, 2]),
                    salt=random.randbytes(4),
                    stored_key=b"s",
                    server_key=b"k",
                    iterations=4096,
                )
        parts = [
            ClientQuotaEntity(entity_type="user", entity_name=random.choice(["a", None])),
            ClientQuotaEntity(entity_type="client-id", entity_name=random.choice(["c", None])),
        ]
        return ClientQuotaRecord(
            entity=tuple(parts[: random.randrange(1, 3)]),
            key=random.choice(["producer_byte_rate", "consumer_byte_rate"]),
            value=random.choice([0.5, 1e6]),
            remove=random.random() < 0.4,
        )

    def _partition(self, topic_id: UUID, index: int) -> PartitionRecord:
        return PartitionRecord(
            topic_id=TopicId(topic_id),
            partition_id=index,
            replicas=node_ids(1, 2),
            isr=self.random.choice([node_ids(1, 2), node_ids(2)]),
            leader=NodeId(2),
            leader_epoch=LeaderEpoch(self.random.randrange(3)),
            partition_epoch=PartitionEpoch(self.random.randrange(3)),
            directories=(UUID(int=200), UUID(int=201)),
            removing_replicas=self.random.choice([(), node_ids(1)]),
            elr=self.random.choice([(), node_ids(1)]),
        )

    def _registration(self, epoch: int) -> RegisterBrokerRecord:
        broker_id = self.random.randrange(1, 4)
        return RegisterBrokerRecord(
            broker_id=NodeId(broker_id),
            incarnation_id=UUID(int=self.random.getrandbits(64)),
            broker_epoch=BrokerEpoch(epoch),
            endpoints=(Endpoint(name="PLAINTEXT", host="h", port=9_000 + broker_id, security_protocol=0),),
            features=(SupportedFeature(name="f", min_supported_version=0, max_supported_version=2),),
            rack=self.random.choice([None, "r"]),
            log_dirs=(UUID(int=200 + broker_id),),
        )


def encode(records: list[MetadataRecord]) -> bytes:
    return encode_entry(5, [encode_record(record) for record in records])


class Recorder:
    def __init__(self) -> None:
        self.image = EMPTY_IMAGE

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Every delta makes the image from the one before it."""
        assert delta.base == self.image
        made = delta.apply(offset=image.offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms)
        assert made == image
        self.image = image


@pytest.mark.thorough
@given(seed=st.integers(0, 2**32), count=st.integers(1, 30), cut=st.integers(0, 30))
def test_replay_equals_snapshot_and_replay(seed: int, count: int, cut: int) -> None:
    history = History(seed)
    entries = [encode(history.entry()) for _ in range(count)]
    cut = min(cut, count)
    recorder = Recorder()
    publishers = Publishers()
    publishers.add(recorder)
    whole = MetadataLoader(publishers)
    whole.catch_up()
    snapshot: list[bytes] = []
    for offset, entry in enumerate(entries):
        if offset == cut:
            snapshot = list(image_chunks(whole.image))
        whole.load_entry(offset, ControllerEpoch(1), entry)
    assert recorder.image == whole.image == history.image

    resumed = MetadataLoader(Publishers())
    if cut < count:
        resumed.load_snapshot(snapshot, end_offset=cut, epoch=ControllerEpoch(min(cut, 1)))
    else:
        resumed.load_snapshot(image_chunks(whole.image), end_offset=count, epoch=ControllerEpoch(1))
    for offset in range(cut, count):
        resumed.load_entry(offset, ControllerEpoch(1), entries[offset])
    resumed.catch_up()
    assert resumed.image == whole.image


@pytest.mark.thorough
@given(seed=st.integers(0, 2**32), before=st.integers(0, 15), after=st.integers(0, 15))
def test_a_comparison_makes_the_other_image(seed: int, before: int, after: int) -> None:
    history = History(seed)
    for _ in range(before):
        history.entry()
    base = history.image
    for _ in range(after):
        history.entry()
    image = history.image
    for first in (base, EMPTY_IMAGE):
        delta = MetadataDelta.between(first, image)
        assert delta.apply(offset=image.offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms) == image
    assert MetadataDelta.between(image, image).is_empty
    same_place = replace(base, offset=image.offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms)
    assert MetadataDelta.between(base, image).is_empty == (same_place == image)


@pytest.mark.thorough
@given(seed=st.integers(0, 2**32))
def test_an_image_comes_back_from_its_records(seed: int) -> None:
    history = History(seed)
    for _ in range(20):
        history.entry()
    image = history.image
    rebuilt = MetadataDelta(EMPTY_IMAGE)
    for record in image_records(image):
        rebuilt.replay(record)
    assert rebuilt.apply(offset=image.offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms) == image
    chunks = list(image_chunks(image))
    assert len(chunks) == sum(1 for _ in image_records(image)) // RECORDS_PER_CHUNK + 1
    assert image_from_chunks(chunks, offset=image.offset, epoch=image.epoch) == image


def test_one_change_shares_all_other_topics() -> None:
    delta = MetadataDelta(EMPTY_IMAGE)
    for number in range(1, 1_001):
        delta.replay(TopicRecord(name=f"t{number}", topic_id=TopicId(UUID(int=number))))
    image = delta.apply(offset=0, epoch=ControllerEpoch(1), timestamp_ms=0)
    change = MetadataDelta(image)
    change.replay(History(1)._partition(UUID(int=5), 0))
    changed = change.apply(offset=1, epoch=ControllerEpoch(1), timestamp_ms=0)
    different = [name for name, topic in changed.topics.by_name.items() if image.topics.by_name[name] is not topic]
    assert different == ["t5"]
    assert changed.configs is image.configs


TOPIC = TopicRecord(name="t", topic_id=TopicId(UUID(int=1)))


@pytest.mark.parametrize(
    "records",
    [
        [TOPIC, TOPIC],
        [TOPIC, TopicRecord(name="t", topic_id=TopicId(UUID(int=2)))],
        [RemoveTopicRecord(topic_id=TopicId(UUID(int=1)))],
        [TOPIC, RemoveTopicRecord(topic_id=TopicId(UUID(int=1))), RemoveTopicRecord(topic_id=TopicId(UUID(int=1)))],
        [TOPIC, PartitionChangeRecord(topic_id=TopicId(UUID(int=1)), partition_id=0)],
        [TOPIC, History(1)._partition(UUID(int=1), 1)],
        [BrokerRegistrationChangeRecord(broker_id=NodeId(1), broker_epoch=BrokerEpoch(1))],
        [ClusterRecord(cluster_id="a"), ClusterRecord(cluster_id="b")],
        [RemoveAccessControlEntryRecord(id=UUID(int=1))],
        [RemoveUserScramCredentialRecord(name="a", mechanism=1)],
        [RemoveDelegationTokenRecord(token_id="t")],
        [EndTransactionRecord()],
        [AbortTransactionRecord()],
        [BeginTransactionRecord(), BeginTransactionRecord()],
    ],
)
def test_records_that_do_not_fit_are_refused(records: list[MetadataRecord]) -> None:
    loader = MetadataLoader(Publishers())
    loader.catch_up()
    with pytest.raises(ReplayError):
        loader.load_entry(0, ControllerEpoch(1), encode(records))


def test_a_transaction_is_seen_at_its_end_or_never() -> None:
    recorder = Recorder()
    publishers = Publishers()
    publishers.add(recorder)
    loader = MetadataLoader(publishers)
    loader.catch_up()
    loader.load_entry(0, ControllerEpoch(1), encode([BeginTransactionRecord(), TOPIC]))
    loader.load_entry(1, ControllerEpoch(1), encode([History(1)._partition(UUID(int=1), 0)]))
    assert (loader.image.offset, recorder.image.topics.by_name.get("t")) == (-1, None)
    assert loader.is_in_transaction
    loader.load_entry(2, ControllerEpoch(1), encode([EndTransactionRecord()]))
    assert recorder.image.offset == 2
    assert len(recorder.image.topics.by_name["t"].partitions) == 1
    loader.load_entry(
        3, ControllerEpoch(1), encode([BeginTransactionRecord(), RemoveTopicRecord(topic_id=TopicId(UUID(int=1)))])
    )
    loader.load_entry(4, ControllerEpoch(2), b"")
    assert recorder.image.offset == 2
    loader.load_entry(5, ControllerEpoch(2), encode([AbortTransactionRecord(reason="test")]))
    assert "t" in recorder.image.topics.by_name
    assert (loader.image.offset, loader.image.epoch) == (5, 2)


def test_a_late_publisher_hears_everything_there_is() -> None:
    publishers = Publishers()
    loader = MetadataLoader(publishers)
    loader.catch_up()
    loader.load_entry(
        0, ControllerEpoch(1), encode([TOPIC, ConfigRecord(resource_type=2, resource_name="t", name="k", value="v")])
    )
    recorder = Recorder()
    publishers.add(recorder)
    assert recorder.image == loader.image
    assert recorder.image.configs.of(ConfigResource(2, "t")) == {"k": "v"}
