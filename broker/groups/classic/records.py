"""Records of classic groups and of committed offsets in `__consumer_offsets`, in Apache Kafka's format.

key version  key                     value versions
0, 1         group, topic, partition  0 to 4; 4, with the topic's id, is written as by Kafka 4.1 and later
2            group                    0 to 4; 3 (KIP-345) is written as by Kafka 2.3 and later
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from ....protocol.batches import NO_TIMESTAMP
from ....protocol.ids import NO_LEADER_EPOCH
from ....protocol.primitives import uvarint
from ...coordination.effects import Effects
from ...coordination.ports import StateRecord
from ...coordination.record_format import RecordFormat, field, struct_array
from .group import ClassicGroup, ClassicState
from .member import ClassicMember, MemberProtocol

OFFSET_COMMIT_KEYS: Final = range(2)
GROUP_METADATA_KEYS: Final = range(2, 3)


class OffsetCommitKey(NamedTuple):
    group: str
    topic: str
    partition: int


class OffsetCommitValue(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_TIMESTAMP
    """Only of commits to older brokers that named a retention of their own."""
    topic_id: UUID | None = None
    """Of the topic that was meant: an offset of a deleted topic is not one of its successor."""


class GroupMetadataKey(NamedTuple):
    group: str


class MemberMetadata(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadataValue(NamedTuple):
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[MemberMetadata, ...]


OFFSET_COMMIT_KEY: Final = RecordFormat(
    OffsetCommitKey, [field("string"), field("string"), field("int32")], versions=OFFSET_COMMIT_KEYS
)
_OFFSET_COMMIT_FIELDS: Final = [
    field("int64"),
    field("int32", since=3, default=NO_LEADER_EPOCH),
    field("string"),
    field("int64"),
    field("int64", since=1, until=1, default=NO_TIMESTAMP),
    field("uuid", since=4, tag=0, is_nullable=True),
]
OFFSET_COMMIT_VALUE: Final = RecordFormat(OffsetCommitValue, _OFFSET_COMMIT_FIELDS, versions=range(5), flexible_since=4)


def offset_commit_key(group: str, topic: str, partition: int) -> bytes:
    return OFFSET_COMMIT_KEY.write(OffsetCommitKey(group, topic, partition))


_VALUE_START: Final = Struct(">hqi")
_TIMESTAMP: Final = Struct(">q")
_NO_TAGS: Final = b"\0"
_TAGGED_TOPIC_ID: Final = b"\1\0\x10"


def offset_commit_value(value: OffsetCommitValue) -> bytes:
    """What `OFFSET_COMMIT_VALUE` writes, by hand."""
    metadata = value.metadata.encode()
    return b"".join(
        (
            _VALUE_START.pack(OFFSET_COMMIT_VALUE.version, value.offset, value.leader_epoch),
            uvarint(len(metadata) + 1),
            metadata,
            _TIMESTAMP.pack(value.commit_timestamp_ms),
            offset_commit_tags(value.topic_id),
        )
    )


def offset_commit_tags(topic_id: UUID | None) -> bytes:
    """The end of the value."""
    return _NO_TAGS if topic_id is None else _TAGGED_TOPIC_ID + topic_id.bytes


GROUP_METADATA_KEY: Final = RecordFormat(GroupMetadataKey, [field("string")], versions=GROUP_METADATA_KEYS)
GROUP_METADATA_VALUE: Final = RecordFormat(
    GroupMetadataValue,
    [
        field("string"),
        field("int32"),
        field("string", is_nullable=True),
        field("string", is_nullable=True),
        field("int64", since=2, default=NO_TIMESTAMP),
        struct_array(
            MemberMetadata,
            field("string"),
            field("string", is_nullable=True, since=3),
            field("string"),
            field("string"),
            field("int32", since=1, default=-1),
            field("int32"),
            field("bytes"),
            field("bytes"),
        ),
    ],
    versions=range(5),
    written=3,
    flexible_since=4,
)


def record_of(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> StateRecord:
    """With the members' own assignments unless others are given."""
    protocol = group.protocol_name
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=protocol,
        leader=group.leader,
        state_timestamp_ms=NO_TIMESTAMP if group.state_timestamp_ms is None else group.state_timestamp_ms,
        members=tuple(
            MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
                subscription=b"" if protocol is None else member.metadata_of(protocol),
                assignment=member.assignment if assignments is None else assignments[member.id],
            )
            for member in group.members.values()
        ),
    )
    return StateRecord(GROUP_METADATA_KEY.write(GroupMetadataKey(group.id)), GROUP_METADATA_VALUE.write(value))


def group_of(group_id: str, value: GroupMetadataValue, effects: Effects) -> ClassicGroup:
    """The group that `record_of` has written; the sessions of its members have not begun."""
    group = ClassicGroup(group_id, effects, now_ms=value.state_timestamp_ms if value.state_timestamp_ms >= 0 else None)
    group.generation = value.generation
    for stored in value.members:
        timeout_ms = stored.rebalance_timeout_ms
        member = ClassicMember(
            id=stored.member_id,
            instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            rebalance_timeout_ms=timeout_ms if timeout_ms >= 0 else stored.session_timeout_ms,
            session_timeout_ms=stored.session_timeout_ms,
            protocols=() if value.protocol is None else (MemberProtocol(value.protocol, stored.subscription),),
            assignment=stored.assignment,
        )
        group.add(member, value.protocol_type)
    if value.members:
        group.state = ClassicState.STABLE
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader = value.leader
    group.find_subscribed_topics()
    return group


def tombstone_of(group_id: str) -> StateRecord:
    return StateRecord(GROUP_METADATA_KEY.write(GroupMetadataKey(group_id)), None)
