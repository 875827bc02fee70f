"""AlterReplicaLogDirs: a replica that is where it is to be, one that is not here yet, and what cannot be (KIP-113)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32

from penstock.broker.apis.alter_replica_log_dirs import alter_replica_log_dirs, error_response
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.storage.directories.log_directory import LogDirectory
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode

Preferred = list[tuple[tuple[str, int], str]]


class Mover:
    def __init__(self) -> None:
        self.begun: list[tuple[str, str]] = []

    def begin(self, log: Log, directory: LogDirectory) -> None:
        self.begun.append((log.name, directory.path))


def request(path: str, topic: str = "a", *indexes: int) -> AlterReplicaLogDirsRequest:
    wanted = AlterReplicaLogDirTopic(name=TopicName(topic), partitions=tuple(map(i32, indexes or (0,))))
    return AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=path, topics=(wanted,)),))


def alter(
    node: DataNode, asked: AlterReplicaLogDirsRequest, *, failed: str = "", mover: Mover | None = None
) -> tuple[list[int], Preferred]:
    """The codes in order, and where logs are to be made from now on."""
    directories = [LogDirectory(MemoryFiles(), path) for path in (str(node.logs.folder), "/other")]
    for directory in directories:
        if directory.path == failed:
            directory.error = OSError(5, "Input/output error")
    preferred: Preferred = []
    answer: Any = alter_replica_log_dirs(
        node.partitions,
        directories,
        lambda partition, one: preferred.append((partition, one.path)),
        Mover() if mover is None else mover,
        asked,
    )
    return [one.error_code for topic in answer.results for one in topic.partitions], preferred


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_replica_that_is_here_is_moved(node: DataNode, slash: str) -> None:
    node.create_topic("a", partition_count=2)
    mover = Mover()
    assert alter(node, request(f"/other{slash}", "a", 0, 1), mover=mover) == ([ErrorCode.NONE, ErrorCode.NONE], [])
    assert mover.begun == [("a-0", "/other"), ("a-1", "/other")]


def test_a_topic_whose_name_is_too_long_for_a_copy(node: DataNode) -> None:
    name = "a" * 230
    node.create_topic(name)
    mover = Mover()
    assert alter(node, request("/other", name), mover=mover) == ([ErrorCode.INVALID_TOPIC_EXCEPTION], [])
    assert mover.begun == []


def test_a_replica_that_is_not_here_yet_will_be_made_there(node: DataNode) -> None:
    node.create_topic("a", replicas=(2, 3))
    asked = request("/other")
    assert alter(node, asked) == ([ErrorCode.REPLICA_NOT_AVAILABLE], [(("a", 0), "/other")])


def test_an_unknown_partition_will_be_made_there(node: DataNode) -> None:
    asked = request("/other")
    assert alter(node, asked) == ([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], [(("a", 0), "/other")])


def test_directories_that_cannot_be_used(node: DataNode) -> None:
    node.create_topic("a")
    assert alter(node, request("/nowhere")) == ([ErrorCode.LOG_DIR_NOT_FOUND], [])
    assert alter(node, request("/other"), failed="/other") == ([ErrorCode.KAFKA_STORAGE_ERROR], [])


def test_an_error_is_told_of_each_partition() -> None:
    answer: Any = error_response(request("/other", "a", 0, 3), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    (topic,) = answer.results
    codes = [(one.partition_index, one.error_code) for one in topic.partitions]
    assert codes == [(0, ErrorCode.UNKNOWN_SERVER_ERROR), (3, ErrorCode.UNKNOWN_SERVER_ERROR)]
