"""Who may commit and fetch the offsets of a consumer group (KIP-848, KIP-1251)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from ....protocol.errors import ErrorCode, KafkaError
from .group import ConsumerGroup
from .member import ConsumerMember

NO_EPOCH: Final = -1


def check_commit(
    group: ConsumerGroup,
    member_id: str,
    epoch: int,
    partitions: Iterable[tuple[UUID | None, int]],
    *,
    knows_member_epochs: bool,
) -> None:
    """Raises KafkaError. An older epoch is good for partitions that the member has had since then.

    Without an epoch the commit is an administrator's, which is allowed while the group is empty.
    `knows_member_epochs`: of OffsetCommit 9 and later.
    """
    if epoch < 0 and group.is_empty:
        return
    member = _member_of(group, member_id)
    if not member.uses_classic_protocol and not knows_member_epochs:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
        )
    current = member.current
    if epoch > current.epoch:
        raise _stale(member, f"Received member epoch {epoch} is newer than current member epoch {current.epoch}.")
    if epoch == current.epoch:
        return
    for topic_id, partition in partitions:
        since = None if topic_id is None else current.assignment_epoch(topic_id, partition)
        if since is None:
            raise _stale(
                member, f"Partition {partition} of {topic_id} is not assigned or pending revocation for member."
            )
        if epoch < since:
            raise _stale(
                member,
                f"Received member epoch {epoch} is older than assignment epoch {since} for partition {partition} of "
                f"{topic_id}.",
            )


def check_commit_in_transaction(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    epoch: int,
    partitions: Iterable[tuple[UUID | None, int]],
) -> None:
    """The same for a transaction's commit, which need not name its member (KIP-447). Raises KafkaError: of epochs that
    are not the member's only ILLEGAL_GENERATION is known there."""
    if epoch == NO_EPOCH and not member_id and instance_id is None:
        return
    try:
        check_commit(group, member_id, epoch, partitions, knows_member_epochs=True)
    except KafkaError as error:
        if error.code is ErrorCode.STALE_MEMBER_EPOCH:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from error
        raise


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Raises KafkaError. A request without a member, such as an administrator's, may always fetch."""
    if member_id is None and epoch < 0:
        return
    member = _member_of(group, member_id or "")
    if epoch != member.current.epoch:
        raise _stale(
            member,
            f"The received member epoch {epoch} does not match the expected member epoch {member.current.epoch}.",
        )


def _member_of(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    member = group.members.get(member_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.id}.")
    return member


def _stale(member: ConsumerMember, sentence: str) -> KafkaError:
    code = ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
    return KafkaError(code, sentence)
