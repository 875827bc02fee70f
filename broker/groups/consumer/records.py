"""Records of consumer groups in `__consumer_offsets`, in the format of Apache Kafka 4.3 (KIP-848, KIP-1101, KIP-1263).

key version  key                  value
3            group                its epoch, and a hash of the topics that it reads
4            group                what its topics were: written until Kafka 4.0, and deleted since
5            group, member        who the member is, and what it has subscribed to
6            group                the epoch of the target assignment
7            group, member        its part of the target assignment
8            group, member        where the member is on its way there
16           group, expression    the topics that a regular expression stands for
"""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from ...coordination.record_format import Field, RecordFormat, field, struct_array
from ..classic.member import MemberProtocol

NO_TIMESTAMP: Final = 0
NO_HASH: Final = 0


class GroupKey(NamedTuple):
    group: str


class MemberKey(NamedTuple):
    group: str
    member: str


class RegularExpressionKey(NamedTuple):
    group: str
    expression: str


class GroupEpochValue(NamedTuple):
    epoch: int
    metadata_hash: int


class ClassicMembership(NamedTuple):
    """Of a member that speaks the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]


class Subscription(NamedTuple):
    """What a member says of itself, and what it wants to read."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """Sorted, each once."""
    regular_expression: str | None = ""
    """None or empty: no expression."""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMembership | None = None


class TargetEpochValue(NamedTuple):
    epoch: int
    timestamp_ms: int
    """When it was computed; 0 if unknown."""


class TopicPartitions(NamedTuple):
    topic_id: UUID
    partitions: tuple[int, ...]


class OwnedTopicPartitions(NamedTuple):
    topic_id: UUID
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None
    """Since which epoch the member has each partition; None in records of before Kafka 4.3."""


class TargetMemberValue(NamedTuple):
    topics: tuple[TopicPartitions, ...]


class CurrentMemberValue(NamedTuple):
    epoch: int
    previous_epoch: int
    state: int
    assigned: tuple[OwnedTopicPartitions, ...]
    pending_revocation: tuple[OwnedTopicPartitions, ...]


class RegularExpressionValue(NamedTuple):
    topics: tuple[str, ...]
    version: int
    """Of the metadata that it was matched against."""
    timestamp_ms: int


def _group_key(version: int) -> RecordFormat[GroupKey]:
    return RecordFormat(GroupKey, [field("string")], versions=range(version, version + 1))


def _member_key(version: int) -> RecordFormat[MemberKey]:
    return RecordFormat(MemberKey, [field("string"), field("string")], versions=range(version, version + 1))


_ONLY: Final = range(1)
_OWNED_FIELDS: Final = (
    field("uuid"),
    field("int32", is_array=True),
    field("int32", is_array=True, is_nullable=True, tag=0),
)

GROUP_EPOCH_KEY: Final = _group_key(3)
GROUP_EPOCH_VALUE: Final = RecordFormat(
    GroupEpochValue, [field("int32"), field("int64", tag=0, default=NO_HASH)], versions=_ONLY, flexible_since=0
)
PARTITION_METADATA_KEY: Final = _group_key(4)
SUBSCRIPTION_KEY: Final = _member_key(5)
SUBSCRIPTION_VALUE: Final = RecordFormat(
    Subscription,
    [
        field("string", is_nullable=True),
        field("string", is_nullable=True),
        field("string"),
        field("string"),
        field("string", is_array=True),
        field("string", is_nullable=True),
        field("int32", default=-1),
        field("string", is_nullable=True),
        Field(
            type=(field("int32"), struct_array(MemberProtocol, field("string"), field("bytes"))),
            make=ClassicMembership,
            is_nullable=True,
            tag=0,
        ),
    ],
    versions=_ONLY,
    flexible_since=0,
)
TARGET_EPOCH_KEY: Final = _group_key(6)
TARGET_EPOCH_VALUE: Final = RecordFormat(
    TargetEpochValue, [field("int32"), field("int64", tag=0, default=NO_TIMESTAMP)], versions=_ONLY, flexible_since=0
)
TARGET_MEMBER_KEY: Final = _member_key(7)
TARGET_MEMBER_VALUE: Final = RecordFormat(
    TargetMemberValue,
    [struct_array(TopicPartitions, field("uuid"), field("int32", is_array=True))],
    versions=_ONLY,
    flexible_since=0,
)
CURRENT_MEMBER_KEY: Final = _member_key(8)
CURRENT_MEMBER_VALUE: Final = RecordFormat(
    CurrentMemberValue,
    [
        field("int32"),
        field("int32"),
        field("int8"),
        struct_array(OwnedTopicPartitions, *_OWNED_FIELDS),
        struct_array(OwnedTopicPartitions, *_OWNED_FIELDS),
    ],
    versions=_ONLY,
    flexible_since=0,
)
REGULAR_EXPRESSION_KEY: Final = RecordFormat(
    RegularExpressionKey, [field("string"), field("string")], versions=range(16, 17)
)
REGULAR_EXPRESSION_VALUE: Final = RecordFormat(
    RegularExpressionValue,
    [field("string", is_array=True), field("int64"), field("int64")],
    versions=_ONLY,
    flexible_since=0,
)
