"""Copies ranges of offsets piece by piece until all are done."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from confluent_kafka import IsolationLevel
from confluent_kafka.admin import OffsetSpec
from pyspark.sql import DataFrame, SparkSession

from ..connector.admin_clients import list_offsets
from ..connector.deadline import Deadline
from .batch_copy import BatchCopy
from .errors import MirrorError
from .rules.backfill_ranges import Bound, Place, bound, next_piece, resolve
from .rules.offset_map import Range, range_record, request_record
from .rules.source_partition import SourcePartition

_LOG: Final = logging.getLogger(__name__)

_TIMEOUT_S: Final = 120.0

Read = Callable[[SparkSession, str, str, str], DataFrame]
"""Reads the partitions, from the offsets, to the offsets, all in the JSON of Spark's options."""


class BackfillRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for: a copy that has begun goes on only with the same."""

    start: str
    end: str
    start_time: str
    end_time: str
    topic_format: str
    partitioning: str


class BackfillCopy:
    def __init__(self, copy: BatchCopy, cluster: str, request: BackfillRequest, limit: int, read: Read) -> None:
        """`limit` is the number of offsets in a piece, about."""
        self._copy = copy
        self._cluster = cluster
        self._request = request
        self._limit = limit
        self._read = read

    def __call__(self, records: DataFrame, batch_id: int) -> None:
        """Raises MirrorError, RequestError."""
        copy = self._copy
        copy.prepare(is_first_batch=batch_id == 0)
        ranges = self._ranges()
        done = {place: self._done(place, one) for place, one in ranges.items()}
        while piece := next_piece(ranges, done, self._limit):
            copy.write(self._read(records.sparkSession, *_options(piece)))
            copy.prepare(is_first_batch=False)
            done |= {place: end for place, (_, end) in piece.items()}
            left = sum(one.end_offset - done[place] for place, one in ranges.items())
            _LOG.info("backfill %s: %d offsets are left", copy.settings.name, left)

    def _done(self, place: Place, wanted: Range) -> int:
        topic, partition = place
        position = self._copy.map.found.positions.get(
            SourcePartition(cluster=self._cluster, topic=topic, partition=partition)
        )
        return max(wanted.start_offset, position.next_offset if position else 0)

    def _ranges(self) -> dict[Place, Range]:
        """Those of the first run, which are kept."""
        found = self._copy.map.found
        request = msgspec.json.encode(self._request).decode()
        if found.request is None:
            ranges = self._resolved()
            records = [range_record(topic, number, one) for (topic, number), one in ranges.items()]
            # The request comes last: with it the ranges are whole.
            for pair in (*records, request_record(request)):
                self._copy.map.write([(0, pair)])
            self._copy.map.follow(is_first_batch=False)
        if found.request != request:
            raise MirrorError(
                f"a backfill of the name {self._copy.settings.name} was begun for {found.request}, and not for"
                f" {request}: give this one a name of its own (--set name=…) and a new checkpoint"
            )
        for (topic, _), one in found.ranges.items():
            route = self._copy.routes.get((self._cluster, topic))
            if route is None or route.source_topic_id != one.source_topic_id:
                raise MirrorError(
                    f"topic {topic} was deleted or made again since the backfill {self._copy.settings.name} began: its"
                    " offsets mean other records now"
                )
        return dict(found.ranges)

    def _resolved(self) -> dict[Place, Range]:
        deadline = Deadline(_TIMEOUT_S)
        source = self._copy.settings.sources[self._cluster]
        places = {
            (topic, number): route.source_topic_id
            for (_, topic), route in self._copy.routes.items()
            for number in range(route.source_partition_count)
        }
        start = bound(self._request.start, self._request.start_time)
        end = bound(self._request.end, self._request.end_time)
        log_starts = list_offsets(source, dict.fromkeys(places, OffsetSpec.earliest()), deadline)
        # Up to what is decided: a transaction that is open would be waited for.
        log_ends = list_offsets(
            source, dict.fromkeys(places, OffsetSpec.latest()), deadline, isolation_level=IsolationLevel.READ_COMMITTED
        )
        return resolve(
            places,
            _offsets(source, start, places, deadline),
            _offsets(source, end, places, deadline),
            {place: (log_starts[place], log_ends[place]) for place in places},
        )


def _offsets(
    source: Mapping[str, str], found: Bound, places: Mapping[Place, str], deadline: Deadline
) -> Mapping[Place, int | None]:
    """As `resolve` takes them."""
    if isinstance(found, dict):
        return found
    if isinstance(found, str):
        return dict.fromkeys(places, -2 if found == "earliest" else -1)
    answers = list_offsets(source, dict.fromkeys(places, OffsetSpec.for_timestamp(found)), deadline)
    return {place: None if offset < 0 else offset for place, offset in answers.items()}


def _options(piece: Mapping[Place, tuple[int, int]]) -> tuple[str, str, str]:
    assigned: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for (topic, number), (start, end) in piece.items():
        assigned.setdefault(topic, []).append(number)
        starts.setdefault(topic, {})[str(number)] = start
        ends.setdefault(topic, {})[str(number)] = end
    return (
        msgspec.json.encode(assigned).decode(),
        msgspec.json.encode(starts).decode(),
        msgspec.json.encode(ends).decode(),
    )
