"""Plans of reassignments as files, in the JSON of Apache Kafka's kafka-reassign-partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ...protocol.rest.moves import Assignment, Move

VERSION: Final = 1
_ANY_DIRECTORY: Final = "any"


class _FilePartition(msgspec.Struct, kw_only=True):
    topic: str
    partition: int
    replicas: list[int]
    log_dirs: list[str] | None = None


class _File(msgspec.Struct, kw_only=True):
    version: int = VERSION
    partitions: list[_FilePartition]


def plan_text(moves: Iterable[Move], *, is_rollback: bool = False) -> str:
    """The file of a plan, or of the one that takes it back."""
    partitions = []
    for move in moves:
        replicas = move.before if is_rollback else move.after
        directories = [_ANY_DIRECTORY] * len(replicas)
        partitions.append(
            _FilePartition(topic=move.topic, partition=move.partition, replicas=replicas, log_dirs=directories)
        )
    return msgspec.json.encode(_File(partitions=partitions)).decode() + "\n"


def parse_plan(text: str | bytes) -> list[Assignment]:
    """Raises ValueError with a sentence. Only log directories of `any` are possible over HTTP."""
    try:
        file = msgspec.json.decode(text, type=_File)
    except msgspec.MsgspecError as error:
        raise ValueError(f"it is no plan of reassignments: {error}") from error
    if file.version != VERSION:
        raise ValueError(f"its version is {file.version}, not {VERSION}")
    for one in file.partitions:
        if any(directory != _ANY_DIRECTORY for directory in one.log_dirs or ()):
            raise ValueError(
                f"{one.topic}-{one.partition} names log directories: kafka-reassign-partitions moves replicas to those"
            )
    return [Assignment(topic=one.topic, partition=one.partition, replicas=one.replicas) for one in file.partitions]


def moved_replicas(moves: Sequence[Move]) -> dict[int, tuple[int, int]]:
    """By broker, how many replicas a plan brings to it and takes off it."""
    brokers = sorted({broker for move in moves for broker in (*move.adding, *move.removing)})
    return {
        broker: (
            sum(broker in move.adding for move in moves),
            sum(broker in move.removing for move in moves),
        )
        for broker in brokers
    }
