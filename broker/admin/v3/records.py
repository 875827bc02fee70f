"""`/v3/…/topics/{topic_name}/records`: produced as with Confluent's REST API, and read by people at a keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final
from urllib.parse import urlencode

from ....protocol.errors import KafkaError
from ....protocol.fetch import READ_COMMITTED
from ....protocol.records import Record
from ....protocol.rest.records import (
    BatchFailure,
    BatchSuccess,
    Isolation,
    ProduceBatch,
    Produced,
    ProducedBatch,
    ProduceRecord,
    ReadQuery,
    ReadRecord,
    ReadTopicQuery,
    RecordHeader,
    RecordList,
    TopicRecordList,
)
from ....quorum.metadata.image import TopicImage
from ...cluster.rules.offset_questions import READ_UNCOMMITTED, OffsetTime
from ..operation import JSON, Call, HttpError, Operation, Stream
from ..rules.record_data import shown
from ..turns import Turns
from . import links, lookups, offsets
from .answers import gather, unavailable
from .record_reader import Reading, read
from .record_sender import RecordSender
from .record_stream import BAD_REQUEST, WRITTEN, BadRecordError, produce_stream, result_of, to_send

_PATH: Final = "/v3/clusters/{cluster_id}/topics/{topic_name}/records"
_TAG: Final = "Records"
PARTITIONS_MAX: Final = 256
"""Of a topic whose partitions are read together."""
PARTITION_BYTES_MIN: Final = 16 * 1024
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LEVELS: Final[dict[Isolation, int]] = {
    "read_committed": READ_COMMITTED,
    "read_uncommitted": READ_UNCOMMITTED,
}


async def _produce(call: Call) -> Stream:
    cluster_id = links.cluster_id(call)
    topic = lookups.topic(call, call.node.image)
    # A node that starts says so by its status.
    call.node.parts()
    return Stream(media_type=JSON, chunks=produce_stream(call, cluster_id, topic.name))


async def _produce_batch(call: Call) -> ProducedBatch:
    cluster_id = links.cluster_id(call)
    topic = lookups.topic(call, call.node.image)
    batch: ProduceBatch = call.body
    if len({entry.id for entry in batch.entries}) < len(batch.entries):
        raise HttpError(400, "Bad Request", "The ids of the entries must differ.")
    now_ms = call.node.wall_clock_ms()
    results: dict[str, Produced] = {}
    parsed = []
    for entry in batch.entries:
        try:
            parsed.append((entry, to_send(entry, now_ms)))
        except BadRecordError as error:
            results[entry.id] = Produced(error_code=BAD_REQUEST, message=str(error))
    outcomes = await RecordSender(call, topic.name).send([one for _, one in parsed])
    for (entry, sent), outcome in zip(parsed, outcomes, strict=True):
        results[entry.id] = result_of(cluster_id, topic.name, entry, sent, outcome)
    answer = ProducedBatch(successes=[], failures=[])
    for entry in batch.entries:
        result = results[entry.id]
        if result.error_code == WRITTEN:
            answer.successes.append(_success(entry.id, result))
        else:
            answer.failures.append(
                BatchFailure(id=entry.id, error_code=result.error_code, message=result.message or "")
            )
    return answer


def _success(entry_id: str, result: Produced) -> BatchSuccess:
    assert isinstance(result.cluster_id, str)
    assert isinstance(result.topic_name, str)
    assert isinstance(result.partition_id, int)
    assert isinstance(result.offset, int)
    assert isinstance(result.timestamp, datetime)
    return BatchSuccess(
        id=entry_id,
        cluster_id=result.cluster_id,
        topic_name=result.topic_name,
        partition_id=result.partition_id,
        offset=result.offset,
        timestamp=result.timestamp,
        key=result.key,
        value=result.value,
    )


async def _read(call: Call) -> RecordList:
    cluster_id = links.cluster_id(call)
    topic, index, _ = lookups.partition(call, call.node.image)
    query: ReadQuery = call.query
    if query.offset is not None and query.timestamp is not None:
        raise HttpError(400, "Bad Request", "Give an offset or a timestamp, not both.")
    level = _LEVELS[query.isolation]
    start: offsets.Found
    if query.offset is not None:
        start = query.offset
    else:
        (start,) = await _starts(call, topic, [index], "latest", query.timestamp, query.limit, level)
    reading = await _read_from(call, topic, index, start, limit=query.limit, bytes_max=query.max_bytes, isolation=level)
    segments = (cluster_id, "topics", topic.name, "partitions", index, "records")
    metadata = links.collection(call, *segments)
    position = {"offset": reading.next_offset, "limit": query.limit, "max_bytes": query.max_bytes}
    metadata.next = f"{metadata.self_}?{urlencode({**position, 'isolation': query.isolation})}"
    return RecordList(
        metadata=metadata,
        cluster_id=cluster_id,
        topic_name=topic.name,
        partition_id=index,
        next_offset=reading.next_offset,
        log_start_offset=reading.log_start_offset,
        end_offset=reading.end_offset,
        data=await _shown([(index, record) for record in reading.records]),
    )


async def _read_topic(call: Call) -> TopicRecordList:
    cluster_id = links.cluster_id(call)
    topic = lookups.topic(call, call.node.image)
    query: ReadTopicQuery = call.query
    count = len(topic.partitions)
    if count > PARTITIONS_MAX:
        raise HttpError(400, "Bad Request", f"Topic {topic.name} has {count} partitions: name one of them.")
    level = _LEVELS[query.isolation]
    indexes = range(count)
    starts = await _starts(call, topic, indexes, query.from_, query.timestamp, query.limit, level)
    bytes_max = max(query.max_bytes // count, min(query.max_bytes, PARTITION_BYTES_MIN))
    readings = await gather(
        [
            partial(_read_from, call, topic, index, start, limit=query.limit, bytes_max=bytes_max, isolation=level)
            for index, start in zip(indexes, starts, strict=True)
        ]
    )
    found: list[tuple[int, Record]] = []
    missing = []
    for index, reading in zip(indexes, readings, strict=True):
        if isinstance(reading, KafkaError):
            missing.append(unavailable(f"partition {topic.name}-{index}", reading))
        else:
            found += [(index, record) for record in reading.records]
    found.sort(key=lambda one: (one[1].timestamp_ms, one[0], one[1].offset))
    is_from_the_end = query.from_ == "latest" and query.timestamp is None
    metadata = links.collection(call, cluster_id, "topics", topic.name, "records")
    if missing:
        metadata.unavailable = missing
    return TopicRecordList(
        metadata=metadata,
        cluster_id=cluster_id,
        topic_name=topic.name,
        data=await _shown(found[-query.limit :] if is_from_the_end else found[: query.limit]),
    )


async def _read_from(
    call: Call, topic: TopicImage, index: int, start: offsets.Found, *, limit: int, bytes_max: int, isolation: int
) -> Reading:
    if isinstance(start, KafkaError):
        raise start
    return await read(call, topic, index, start, limit=limit, bytes_max=bytes_max, isolation=isolation)


async def _starts(
    call: Call, topic: TopicImage, indexes: Sequence[int], from_: str, timestamp_ms: int | None, limit: int, level: int
) -> list[offsets.Found]:
    """Where to begin in each partition: `limit` before its end, at its start, or at a time."""
    places = [(topic.name, index) for index in indexes]

    async def at(time_ms: int) -> list[offsets.Found]:
        found = await offsets.of_leaders(call, call.node.image, places, time_ms, isolation=level)
        return [found[place] for place in places]

    firsts = await at(OffsetTime.EARLIEST)
    if from_ == "earliest" and timestamp_ms is None:
        return firsts
    ends = await at(OffsetTime.LATEST)
    if timestamp_ms is None:
        return [
            max(first, end - limit) if isinstance(first, int) and isinstance(end, int) else _error(first, end)
            for first, end in zip(firsts, ends, strict=True)
        ]
    timed = await at(timestamp_ms)
    # Nothing that is as new: the end.
    return [
        (end if at_time < 0 else at_time) if isinstance(at_time, int) and isinstance(end, int) else _error(at_time, end)
        for at_time, end in zip(timed, ends, strict=True)
    ]


def _error(*found: offsets.Found) -> KafkaError:
    return next(one for one in found if isinstance(one, KafkaError))


async def _shown(records: Sequence[tuple[int, Record]]) -> list[ReadRecord]:
    turns = Turns()
    shown_records = []
    for index, record in records:
        await turns.pause()
        shown_records.append(_resource(index, record))
    return shown_records


def _resource(index: int, record: Record) -> ReadRecord:
    return ReadRecord(
        partition_id=index,
        offset=record.offset,
        timestamp=_time(record.timestamp_ms),
        headers=[
            RecordHeader(name=name.encode(errors="surrogateescape").decode(errors="replace"), value=shown(value))
            for name, value in record.headers
        ],
        key=shown(record.key),
        value=shown(record.value),
    )


def _time(timestamp_ms: int) -> datetime | None:
    """None for one that no calendar has: producers may write any number."""
    try:
        return None if timestamp_ms < 0 else _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None


OPERATIONS: Final = (
    Operation(
        name="produceRecord",
        method="POST",
        path=_PATH,
        tag=_TAG,
        summary="Write records, one JSON object after the other",
        description=(
            "The body may go on as long as the client likes; each object has its result, in order, as soon as all "
            "replicas in sync have the record. Read the results while you send: they are not kept."
        ),
        run=_produce,
        body=ProduceRecord,
        answer=Produced,
        is_stream=True,
        takes_stream=True,
    ),
    Operation(
        name="produceRecordsBatch",
        method="POST",
        path=_PATH + ":batch",
        tag=_TAG,
        summary="Write several records that are in one body",
        run=_produce_batch,
        body=ProduceBatch,
        answer=ProducedBatch,
        status=207,
    ),
    Operation(
        name="readTopicRecords",
        method="GET",
        path=_PATH,
        tag=_TAG,
        summary="The last, or the first, records of a topic",
        description=f"Of a topic of at most {PARTITIONS_MAX} partitions. It does not wait for records.",
        run=_read_topic,
        query=ReadTopicQuery,
        answer=TopicRecordList,
    ),
    Operation(
        name="readRecords",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/records",
        tag=_TAG,
        summary="Records of a partition from an offset or a time on",
        description="Without a position the last ones. It does not wait for records.",
        run=_read,
        query=ReadQuery,
        answer=RecordList,
    ),
)
