"""A change of the metadata before it is proposed: what a decision comes to, all of it computed from values.

So it can be computed beside the loop, when it is about so many partitions that others would wait for it.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar

from msgspec import Struct

from ...protocol.ids import ControllerEpoch
from ..metadata.delta import MetadataDelta
from ..metadata.image import MetadataImage
from ..metadata.record_codec import encode_entry, encode_record
from ..metadata.records import (
    LEADER_RECOVERING,
    NO_LEADER,
    NO_LEADER_CHANGE,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
)
from ..permissions.requester import check_requester
from ..raft.consensus import MAX_COMMAND_BYTES
from .context import ControllerResult, Decision, DecisionContext

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")

# Every node replays an entry in one turn of its loop, and some 75 records of partitions take 2 ms.
ENTRY_BYTES: Final = 8 * 1024
# Room for the entry's own head and for the transaction records beside the records of a command.
_ENTRY_OVERHEAD_BYTES: Final = 1024


class Change(Struct, Generic[ResponseT], frozen=True):
    """The commands to propose, in one go and in this order, and the image that they make of the one before."""

    result: ControllerResult[ResponseT]
    commands: Sequence[bytes]
    image: MetadataImage


def prepare(
    decision: Decision[RequestT, ResponseT],
    image: MetadataImage,
    request: RequestT,
    context: DecisionContext,
    *,
    epoch: ControllerEpoch,
    timestamp_ms: int,
) -> Change[ResponseT]:
    """Decide and encode; a decision without records leaves the image as it is.

    Raises PermissionsChangedError when the requester may not ask for it any more, and KafkaError as the decision.
    """
    if context.requester is not None:
        check_requester(image, context.config.authorizer, context.requester)
    result = decision(image, request, context)
    if not result.records:
        return Change(result, (), image)
    commands = split_commands(timestamp_ms, result.records)
    offset = context.next_offset + len(commands) - 1
    after = image_after(image, result.records, offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
    return Change(result, commands, after)


def image_after(
    image: MetadataImage, records: Iterable[MetadataRecord], *, offset: int, epoch: ControllerEpoch, timestamp_ms: int
) -> MetadataImage:
    """Return the image as it will be when the records are committed, the last of them at `offset`."""
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record)
    return delta.apply(offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)


def replayed(image: MetadataImage, records: Iterable[MetadataRecord]) -> MetadataImage:
    """Return the image with the first records of a decision, for what the decision says further."""
    return image_after(image, records, offset=image.offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms)


def split_commands(timestamp_ms: int, records: Iterable[MetadataRecord]) -> list[bytes]:
    """Return the records as entries of about ENTRY_BYTES: one, or several inside a transaction (KIP-868).

    No entry is larger than MAX_COMMAND_BYTES as long as no record comes near that.
    """
    groups: list[list[bytes]] = [[]]
    size_bytes = 0
    for record in records:
        encoded = encode_record(record)
        assert len(encoded) <= MAX_COMMAND_BYTES - _ENTRY_OVERHEAD_BYTES, f"a record of {len(encoded)} bytes"
        if size_bytes + len(encoded) > ENTRY_BYTES and groups[-1]:
            groups.append([])
            size_bytes = 0
        groups[-1].append(encoded)
        size_bytes += len(encoded)
    if len(groups) > 1:
        groups[0].insert(0, encode_record(BeginTransactionRecord(name="one change")))
        groups[-1].append(encode_record(EndTransactionRecord()))
    return [encode_entry(timestamp_ms, group) for group in groups]


def unclean_elections(records: Iterable[MetadataRecord]) -> int:
    """How many of these changes give a partition a leader that may lack committed records."""
    return sum(
        isinstance(record, PartitionChangeRecord)
        and record.leader_recovery_state == LEADER_RECOVERING
        and record.leader not in (NO_LEADER, NO_LEADER_CHANGE)
        for record in records
    )


def eligible_elections(image: MetadataImage, records: Iterable[MetadataRecord]) -> int:
    """How many of these changes of `image` give a partition a leader from its ELR (KIP-966)."""
    return sum(
        isinstance(record, PartitionChangeRecord)
        and record.leader not in (NO_LEADER, NO_LEADER_CHANGE)
        and _is_eligible(image, record)
        for record in records
    )


def _is_eligible(image: MetadataImage, record: PartitionChangeRecord) -> bool:
    topic = image.topics.by_id.get(record.topic_id)
    # One that the same decision creates has no ELR.
    return topic is not None and record.leader in topic.partitions[record.partition_id].elr
