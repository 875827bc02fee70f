"""DescribeLogDirs: directories, their space, and the logs in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from kio.schema.describe_log_dirs.v5.request import DescribableLogDirTopic, DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v5.response import DescribeLogDirsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32

from penstock.broker.apis.describe_log_dirs import describe_log_dirs, error_response
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.storage.directories.future_log import FutureLog
from penstock.storage.directories.future_logs import FutureLogs
from penstock.storage.directories.log_directory import LogDirectory
from penstock.storage.disk.files import DiskFiles
from penstock.storage.disk.memory_files import MemoryFiles

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode


@dataclass
class Directory:
    path: str
    is_online: bool = True
    is_cordoned: bool = False


class Volumes:
    def __init__(self, error: OSError | None = None) -> None:
        self._error = error

    def free_bytes(self, _path: str) -> int:
        if self._error is not None:
            raise self._error
        return 40

    def total_bytes(self, _path: str) -> int:
        return 100


def request(topics: dict[str, tuple[int, ...]] | None) -> DescribeLogDirsRequest:
    if topics is None:
        return DescribeLogDirsRequest(topics=None)
    return DescribeLogDirsRequest(
        topics=tuple(
            DescribableLogDirTopic(topic=TopicName(name), partitions=tuple(i32(index) for index in indexes))
            for name, indexes in topics.items()
        )
    )


def describe(
    node: DataNode,
    topics: dict[str, tuple[int, ...]] | None,
    *,
    is_online: bool = True,
    error: OSError | None = None,
    future: FutureLog | None = None,
) -> Any:
    futures = FutureLogs(DiskFiles())
    if future is not None:
        futures.add(future)
    directories = [Directory(str(node.logs.folder), is_online), Directory("/other")]
    response = describe_log_dirs(node.partitions, directories, Volumes(error), futures, request(topics))
    assert isinstance(response, DescribeLogDirsResponse), "few partitions are answered at once"
    results = response.results
    assert [result.log_dir for result in results] == [str(node.logs.folder), "/other"]
    return results[0]


def logs(result: Any) -> dict[str, list[int]]:
    return {topic.name: [one.partition_index for one in topic.partitions] for topic in result.topics}


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        (None, {"a": [0, 1], "b": [0]}),
        ({}, {}),
        ({"a": (1, 7), "none": (0,)}, {"a": [1]}),
    ],
)
def test_logs_that_were_asked_for(
    node: DataNode, topics: dict[str, tuple[int, ...]] | None, expected: dict[str, list[int]]
) -> None:
    node.create_topic("a", partition_count=2)
    node.create_topic("b")
    assert logs(describe(node, topics)) == expected


def test_sizes(node: DataNode) -> None:
    node.create_topic()
    node.produce()
    result = describe(node, None)
    (partition,) = result.topics[0].partitions
    assert partition.partition_size == node.hosted().log.size_bytes > 0
    assert (partition.offset_lag, partition.is_future_key) == (0, False)
    assert (result.total_bytes, result.usable_bytes, result.is_cordoned) == (100, 40, False)


def test_a_log_that_moves_is_in_both_directories(node: DataNode) -> None:
    node.create_topic()
    node.produce()
    here = str(node.logs.folder)
    directory = LogDirectory(MemoryFiles(), here)
    future = FutureLog(("flights", 0), directory, f"{here}/flights-0.{'1' * 32}-future", "1" * 32)
    topic = node.hosted().topic
    future.key = (topic, 0)
    now, later = describe(node, None, future=future).topics[0].partitions
    assert (now.is_future_key, later.is_future_key) == (False, True)
    assert (later.partition_size, later.offset_lag) == (0, node.hosted().log.log_end_offset)
    assert later.offset_lag > 0


@pytest.mark.parametrize("failure", [{"is_online": False}, {"error": OSError(5, "Input/output error")}])
def test_failed_directory(node: DataNode, failure: dict[str, Any]) -> None:
    node.create_topic()
    result = describe(node, None, **failure)
    assert (result.error_code, result.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, ())


def test_error_is_told_at_the_top() -> None:
    answer: Any = error_response(request(None), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    assert (answer.error_code, answer.results) == (ErrorCode.UNKNOWN_SERVER_ERROR, ())
