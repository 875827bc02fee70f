"""What consumers of the classic protocol tell each other inside JoinGroup and SyncGroup.

The coordinator looks into little of it, but in a consumer group, where it is the leader of members of the classic
protocol and says what that would say (KIP-848).

Formats: ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json, versions 0 to 3. A version adds fields
at the end, so a reader takes those it knows; an assignment is written in the version of the subscription.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Final, NamedTuple, cast

from ....protocol.errors import CorruptData
from ....protocol.primitives import GARBAGE_ERRORS, array_reader, fixed_reader, sized_reader, sized_writer

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
OWNED_SINCE: Final = 1
GENERATION_SINCE: Final = 2
RACK_SINCE: Final = 3
NEWEST: Final = 3

_VERSION: Final = Struct(">h")
_INT: Final = Struct(">i")
_STRING: Final = sized_reader("string", is_flexible=False, is_nullable=False)
_NULLABLE_STRING: Final = sized_reader("string", is_flexible=False, is_nullable=True)
_NULLABLE_BYTES: Final = sized_reader("bytes", is_flexible=False, is_nullable=True)
_STRINGS: Final = array_reader(_STRING, is_flexible=False, is_nullable=False)
_INTS: Final = array_reader(fixed_reader("int32"), is_flexible=False, is_nullable=False)
_WRITE_STRING: Final = sized_writer("string", is_flexible=False, is_nullable=False)


class EmbeddedAssignment(NamedTuple):
    partitions: dict[str, tuple[int, ...]]
    """By topic."""
    user_data: bytes
    """What an assignor of the members tells a member beside its partitions; none is empty."""


class EmbeddedSubscription(NamedTuple):
    version: int
    topics: tuple[str, ...]
    owned: tuple[tuple[str, tuple[int, ...]], ...]
    rack_id: str | None


def subscribed_topics_of(subscription: bytes) -> tuple[str, ...]:
    """Of any version, whatever comes behind them. Raises CorruptData."""
    try:
        topics, _ = _STRINGS(subscription, _VERSION.size)
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"the subscription cannot be read: {error}") from None
    return cast("tuple[str, ...]", topics)


def read_subscription(data: bytes) -> EmbeddedSubscription:
    """Raises CorruptData."""
    try:
        (version,) = _VERSION.unpack_from(data)
        topics, position = _STRINGS(data, _VERSION.size)
        _, position = _NULLABLE_BYTES(data, position)
        owned: object = ()
        rack: object = None
        if version >= OWNED_SINCE:
            owned, position = _TOPIC_PARTITIONS(data, position)
        if version >= GENERATION_SINCE:
            position += _INT.size
        if version >= RACK_SINCE:
            rack, position = _NULLABLE_STRING(data, position)
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"the subscription cannot be read: {error}") from None
    return EmbeddedSubscription(
        int(version),
        cast("tuple[str, ...]", topics),
        cast("tuple[tuple[str, tuple[int, ...]], ...]", owned),
        cast("str | None", rack),
    )


def read_assignment(data: bytes) -> EmbeddedAssignment:
    """Nothing assigned has no bytes. Raises CorruptData."""
    if not data:
        return EmbeddedAssignment({}, b"")
    try:
        (version,) = _VERSION.unpack_from(data)
        topics, position = _TOPIC_PARTITIONS(data, _VERSION.size)
        user_data, _ = _NULLABLE_BYTES(data, position)
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"the assignment cannot be read: {error}") from None
    if version < 0:
        raise CorruptData(f"the assignment cannot be read: its version is {version}")
    return EmbeddedAssignment(
        dict(cast("Sequence[tuple[str, tuple[int, ...]]]", topics)), bytes(cast("bytes | None", user_data) or b"")
    )


def write_assignment(partitions: Mapping[str, Sequence[int]], version: int) -> bytes:
    """`version` is that of the subscription it answers."""
    out = bytearray(_VERSION.pack(max(0, min(version, NEWEST))) + _INT.pack(len(partitions)))
    for topic, of_topic in partitions.items():
        _WRITE_STRING(out, topic)
        out += _INT.pack(len(of_topic))
        for partition in of_topic:
            out += _INT.pack(partition)
    # No user data.
    return bytes(out + _INT.pack(-1))


def _read_topic_partitions(buffer: bytes | memoryview, position: int) -> tuple[object, int]:
    topic, position = _STRING(buffer, position)
    partitions, position = _INTS(buffer, position)
    return (topic, partitions), position


_TOPIC_PARTITIONS: Final = array_reader(_read_topic_partitions, is_flexible=False, is_nullable=False)
