"""Commits of the offsets that a job has reached to a consumer group, so that tools which show lag see the job.

Spark assigns partitions by itself and keeps offsets in its checkpoint; no group of the cluster knows of it. The group
named here is never read: it may be deleted at any time, and a failed commit is told and left, as the next one has all
partitions again. A group that has members refuses such commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from threading import Condition
from typing import Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from .pipeline_metrics import GroupCounts
from .progress_values import QueryProgress

_TIMEOUT_S: Final = 10.0

Places = Mapping[tuple[str, int], int]


class GroupProgress:
    """One request is on its way at a time; what comes meanwhile waits as one, with the newest offset of each partition.

    `properties` are librdkafka's. `warn` is given a sentence for the first failure in a row."""

    def __init__(self, group: str, properties: Mapping[str, str], warn: Callable[[str], None]) -> None:
        self.counts = GroupCounts(group)
        self._admin = AdminClient(dict(properties))
        self._warn = warn
        self._changed = Condition()
        # Of each query, as two may read a topic: the group stands where the last of them does.
        self._reached: dict[str, Places] = {}
        self._is_waiting = False
        self._is_busy = False
        self._has_failed = False

    def reached(self, progress: QueryProgress) -> None:
        """Commits where the query stands, soon; call it once the batch is in the checkpoint."""
        with self._changed:
            self._reached[progress.name] = {(one.topic, one.partition): one.offset for one in progress.partitions}
            self._is_waiting = True
            if self._is_busy:
                return
            self._is_busy = True
        self._commit()

    def close(self) -> None:
        """Waits for what is on its way and behind it, ten seconds each."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_busy, timeout=2 * _TIMEOUT_S)

    def _commit(self) -> None:
        with self._changed:
            self._is_waiting = False
            places = lowest(self._reached.values())
        offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in places.items()]
        try:
            request = ConsumerGroupTopicPartitions(self.counts.group, offsets)
            future = self._admin.alter_consumer_group_offsets([request], request_timeout=_TIMEOUT_S)[self.counts.group]
        except (KafkaException, ValueError, TypeError) as error:
            self._done(str(error))
            return
        future.add_done_callback(self._answered)

    def _answered(self, future: Future[ConsumerGroupTopicPartitions]) -> None:
        """In a thread of the client's."""
        try:
            partitions = future.result().topic_partitions or []
            errors = [f"{one.topic}-{one.partition}: {one.error}" for one in partitions if one.error is not None]
        except KafkaException as error:
            errors = [str(error)]
        self._done(errors[0] if errors else None)

    def _done(self, error: str | None) -> None:
        if error is None:
            self.counts.commits += 1
        else:
            self.counts.failures += 1
            if not self._has_failed:
                self._warn(f"the group {self.counts.group} does not take the offsets reached; the job goes on: {error}")
        self._has_failed = error is not None
        with self._changed:
            self._is_busy = self._is_waiting
            self._changed.notify_all()
            if not self._is_busy:
                return
        self._commit()


def lowest(reached: Iterable[Places]) -> dict[tuple[str, int], int]:
    """Of each partition the lowest offset: what only some queries have read is not done."""
    places: dict[tuple[str, int], int] = {}
    for of_query in reached:
        for place, offset in of_query.items():
            places[place] = min(offset, places.get(place, offset))
    return places
