"""AlterReplicaLogDirs, versions 1 and 2: moves replicas of this broker between its log directories (KIP-113).

A replica that is here is copied into the directory while it goes on, and is there later: `LogMover`. One that is there
gets NONE, and stays; so does one that is on its way elsewhere, which ends. A future replica is created in the directory
later; until then the error is REPLICA_NOT_AVAILABLE, as in Apache Kafka, and kafka-reassign-partitions retries. A
directory outside `log.dirs` gets LOG_DIR_NOT_FOUND, an offline one KAFKA_STORAGE_ERROR, a cordoned one
INVALID_REPLICA_ASSIGNMENT (KIP-1066), and a topic whose name is too
long for the folder of a copy INVALID_TOPIC_EXCEPTION. A client must be allowed to alter the cluster.
Kafka: `ReplicaManager.alterReplicaLogDirs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kio.schema.alter_replica_log_dirs.v2.request import AlterReplicaLogDirsRequest
from kio.schema.alter_replica_log_dirs.v2.response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...storage.directories.log_directory import LogDirectory
from ...storage.directories.rules.checkpoints import TopicPartition
from ...storage.directories.rules.folder_names import is_too_long_to_move
from ...storage.log.log import Log
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..replicas.replica_manager import ReplicaManager

Prefer = Callable[[TopicPartition, LogDirectory], None]


class Mover(Protocol):
    """The part of `storage/directories/log_mover.py` used here."""

    def begin(self, log: Log, directory: LogDirectory) -> None:
        """Raises OSError."""


def register(
    handlers: Handlers,
    partitions: ReplicaManager,
    directories: Sequence[LogDirectory],
    prefer: Prefer,
    mover: Mover,
) -> None:
    """`prefer` sets the log directory in which the log of a partition will be made."""

    def handle(request: AlterReplicaLogDirsRequest, context: RequestContext) -> AlterReplicaLogDirsResponse:
        context.require_in_cluster(ApiKey.ALTER_REPLICA_LOG_DIRS, AclOperation.ALTER)
        return alter_replica_log_dirs(partitions, directories, prefer, mover, request)

    handlers.add_message(ApiKey.ALTER_REPLICA_LOG_DIRS, handle, answer_error=error_response)


def alter_replica_log_dirs(
    partitions: ReplicaManager,
    directories: Sequence[LogDirectory],
    prefer: Prefer,
    mover: Mover,
    request: AlterReplicaLogDirsRequest,
) -> AlterReplicaLogDirsResponse:
    """Applies the request; a partition listed for two directories gets one result, for the last."""
    codes: dict[TopicName, dict[i32, ErrorCode]] = {}
    for wanted in request.dirs:
        directory = next((one for one in directories if one.path == wanted.path.rstrip("/")), None)
        for topic in wanted.topics:
            for index in topic.partitions:
                code = _alter(partitions, directory, prefer, mover, (str(topic.name), int(index)))
                codes.setdefault(topic.name, {})[index] = code
    return _response({name: tuple(indexes.items()) for name, indexes in codes.items()})


def error_response(request: AlterReplicaLogDirsRequest, error: KafkaError) -> AlterReplicaLogDirsResponse:
    return _response(
        {
            topic.name: tuple((index, error.code) for index in topic.partitions)
            for wanted in request.dirs
            for topic in wanted.topics
        }
    )


def _alter(
    partitions: ReplicaManager,
    directory: LogDirectory | None,
    prefer: Prefer,
    mover: Mover,
    partition: TopicPartition,
) -> ErrorCode:
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if not directory.is_online:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if is_too_long_to_move(*partition):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    hosted = partitions.find(*partition)
    is_there = hosted is not None and hosted.log.directory.startswith(f"{directory.path}/")
    if directory.is_cordoned and not is_there:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if hosted is not None:
        try:
            mover.begin(hosted.log, directory)
        except OSError:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE
    absence = partitions.absence(*partition)
    if absence is not ErrorCode.KAFKA_STORAGE_ERROR:
        prefer(partition, directory)
    return ErrorCode.REPLICA_NOT_AVAILABLE if absence is ErrorCode.NOT_LEADER_OR_FOLLOWER else absence


def _response(codes: dict[TopicName, tuple[tuple[i32, ErrorCode], ...]]) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=kio_error(code))
                    for index, code in indexes
                ),
            )
            for name, indexes in codes.items()
        ),
    )
