"""The logs of this node that are open. Why a partition has none of them: `OfflineLogs`."""

from collections import Counter
from collections.abc import Iterator

from ..log.log import Log
from .log_directory import LogDirectory


class OnlineLogs:
    def __init__(self) -> None:
        self._logs: dict[str, dict[int, Log]] = {}
        # By the path of the directory.
        self._counts: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Log]:
        return (log for partitions in self._logs.values() for log in partitions.values())

    def get(self, topic: str, partition: int) -> Log | None:
        return self._logs.get(topic, {}).get(partition)

    def of_topic(self, topic: str) -> list[Log]:
        return list(self._logs.get(topic, {}).values())

    def in_directory(self, directory: LogDirectory) -> list[Log]:
        return [log for log in self if log.directory.startswith(directory.path + "/")]

    def count_in(self, path: str) -> int:
        """How many are in the log directory with that path."""
        return self._counts[path]

    def add(self, log: Log) -> None:
        self._logs.setdefault(log.topic, {})[log.partition] = log
        self._counts[log.directory.rpartition("/")[0]] += 1

    def remove(self, topic: str, partition: int) -> Log | None:
        """None when there is no such log."""
        partitions = self._logs.get(topic, {})
        log = partitions.pop(partition, None)
        if log is not None:
            self._counts[log.directory.rpartition("/")[0]] -= 1
            if not partitions:
                del self._logs[topic]
        return log

    def clear(self) -> None:
        self._logs.clear()
        self._counts.clear()
