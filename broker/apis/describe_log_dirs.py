"""DescribeLogDirs, versions 1 to 5: log directories, their total and usable bytes, and the logs in them.

1 is the first (KIP-113), 3 adds a top-level error, 4 the sizes of the volumes (KIP-827), 5 cordoned directories. An
offline directory gets KAFKA_STORAGE_ERROR. A request with an empty list of topics gets no logs, one with null gets all.
A log that moves is in both directories, in the one that it moves to as a future log, with the offsets that this lacks.
A client must be allowed to describe the cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from itertools import chain
from posixpath import dirname
from typing import NamedTuple, Protocol, cast

from kio.schema.describe_log_dirs.v5.request import DescribableLogDirTopic, DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v5.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...storage.directories.future_log import FutureLog
from ...storage.log.log import Log
from ..network.handlers import Handlers
from ..network.large_messages import answer_each
from ..network.request import RequestContext
from ..network.rules.large_response import LargeResponse
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager

UNKNOWN_BYTES = -1


class Directory(Protocol):
    """The part of `storage/directories/log_directory.py` used here."""

    @property
    def path(self) -> str: ...
    @property
    def is_online(self) -> bool: ...
    @property
    def is_cordoned(self) -> bool: ...


class FutureLogs(Protocol):
    """The part of `storage/directories/future_logs.py` used here."""

    def get(self, key: tuple[str, int]) -> FutureLog | None: ...


class Volumes(Protocol):
    """The part of `storage/disk/files.py` used here; raises OSError."""

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...


def register(
    handlers: Handlers,
    partitions: ReplicaManager,
    directories: Sequence[Directory],
    volumes: Volumes,
    futures: FutureLogs,
) -> None:
    def handle(
        request: DescribeLogDirsRequest, context: RequestContext
    ) -> DescribeLogDirsResponse | Awaitable[LargeResponse[DescribeLogDirsResponse]]:
        context.require_in_cluster(ApiKey.DESCRIBE_LOG_DIRS, AclOperation.DESCRIBE)
        return describe_log_dirs(partitions, directories, volumes, futures, request)

    handlers.add_message(ApiKey.DESCRIBE_LOG_DIRS, handle, answer_error=error_response)


def describe_log_dirs(
    partitions: ReplicaManager,
    directories: Sequence[Directory],
    volumes: Volumes,
    futures: FutureLogs,
    request: DescribeLogDirsRequest,
) -> DescribeLogDirsResponse | Awaitable[LargeResponse[DescribeLogDirsResponse]]:
    return answer_each(
        [*_wanted(partitions, request.topics)],
        lambda partition: _logs(partition, futures.get((partition.topic, partition.index))),
        lambda logs: _response(directories, volumes, [*chain.from_iterable(logs)]),
    )


def error_response(_request: DescribeLogDirsRequest, error: KafkaError) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(throttle_time=NO_THROTTLE, error_code=kio_error(error.code), results=())


def _wanted(partitions: ReplicaManager, topics: Sequence[DescribableLogDirTopic] | None) -> Iterable[Partition]:
    """Those of the question that are here, each once."""
    if topics is None:
        return partitions.hosted
    places = dict.fromkeys((str(topic.topic), int(index)) for topic in topics for index in topic.partitions)
    return [hosted for topic, index in places if (hosted := partitions.find(topic, index)) is not None]


class _Described(NamedTuple):
    """A log, or one that is being made."""

    directory: str
    topic: str
    log: DescribeLogDirsPartition


def _logs(partition: Partition, future: FutureLog | None) -> Sequence[_Described]:
    own = _Described(
        dirname(partition.log.directory),
        partition.topic,
        _partition(partition.index, partition.log, partition.state.high_watermark),
    )
    if future is None:
        return (own,)
    return own, _Described(future.directory.path, partition.topic, _future(partition, future))


def _response(
    directories: Iterable[Directory], volumes: Volumes, described: Sequence[_Described]
) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(ErrorCode.NONE),
        results=tuple(_describe(directory, volumes, described) for directory in directories),
    )


def _describe(directory: Directory, volumes: Volumes, described: Iterable[_Described]) -> DescribeLogDirsResult:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    error, total_bytes, free_bytes = ErrorCode.KAFKA_STORAGE_ERROR, UNKNOWN_BYTES, UNKNOWN_BYTES
    if directory.is_online:
        try:
            total_bytes, free_bytes = volumes.total_bytes(directory.path), volumes.free_bytes(directory.path)
            error = ErrorCode.NONE
        except OSError:
            # The logs' own errors decide whether the directory stays online.
            pass
    if error is ErrorCode.NONE:
        for path, topic, log in described:
            if path == directory.path:
                topics.setdefault(topic, []).append(log)
    return DescribeLogDirsResult(
        error_code=kio_error(error),
        log_dir=directory.path,
        topics=tuple(DescribeLogDirsTopic(name=TopicName(name), partitions=tuple(p)) for name, p in topics.items()),
        total_bytes=i64(total_bytes),
        usable_bytes=i64(free_bytes),
        is_cordoned=directory.is_cordoned,
    )


def _partition(index: int, log: Log, high_watermark: int) -> DescribeLogDirsPartition:
    # Casts, because the number classes cost a call each, and there may be ten thousand logs.
    return DescribeLogDirsPartition(
        partition_index=cast(i32, index),
        partition_size=cast(i64, log.size_bytes),
        offset_lag=cast(i64, max(high_watermark - log.log_end_offset, 0)),
        is_future_key=False,
    )


def _future(partition: Partition, future: FutureLog) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=cast(i32, partition.index),
        partition_size=cast(i64, future.size_bytes),
        offset_lag=cast(i64, max(partition.log.log_end_offset - future.log_end_offset, 0)),
        is_future_key=True,
    )
