"""A stream of records in JSON to a stream of results, in the same order and in bounded memory.

What has come is sent in one batch for each partition, and its results go to the client before more is read: a client
that does not take its results is not read from.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

import msgspec

from ....protocol.errors import KafkaError
from ....protocol.rest.records import Produced, ProducedData, ProduceRecord, RecordData
from ..operation import Call
from ..rules.json_objects import JsonObjects, NoJsonObjectError
from ..rules.record_data import UnusableDataError, decoded_base64, encoded
from ..turns import Turns
from .answers import sentence
from .record_sender import Outcome, Placed, RecordSender, RecordToSend

BATCH_RECORDS_MAX: Final = 500
BATCH_BYTES_MAX: Final = 512 * 1024
"""Of records in JSON that are sent together; a larger one is sent alone."""
SILENCE_S: Final = 60.0
"""A client that sends nothing for that long is taken for gone."""
BAD_REQUEST: Final = 400
WRITTEN: Final = 200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DECODER: Final = msgspec.json.Decoder(ProduceRecord)

Parsed: TypeAlias = tuple[ProduceRecord, RecordToSend]


class BadRecordError(Exception):
    """What a client sent is no record."""


async def produce_stream(call: Call, cluster_id: str, topic_name: str) -> AsyncIterator[bytes]:
    """The results, a line each. What is no JSON ends the stream: where the next record begins is unknown."""
    sender = RecordSender(call, topic_name)
    objects = JsonObjects()
    turns = Turns()
    has_any = False
    chunks = call.chunks
    assert chunks is not None, "the operation takes a stream"
    try:
        while (chunk := await _next_chunk(chunks)) is not None:
            objects.feed(chunk)
            is_more = True
            while is_more:
                read: list[Parsed | BadRecordError] = []
                refusal: NoJsonObjectError | None = None
                size_bytes = 0
                while len(read) < BATCH_RECORDS_MAX and size_bytes < BATCH_BYTES_MAX:
                    await turns.pause()
                    try:
                        found = objects.next_object()
                    except NoJsonObjectError as error:
                        refusal = error
                        break
                    if found is None:
                        is_more = False
                        break
                    has_any = True
                    size_bytes += len(found)
                    read.append(_parsed(call, found))
                for result in await _send(sender, cluster_id, topic_name, read):
                    yield msgspec.json.encode(result) + b"\n"
                if refusal is not None:
                    yield _failure_line(str(refusal))
                    return
    except TimeoutError:
        yield _failure_line(f"Nothing came for {SILENCE_S:g} s.")
        return
    if not objects.is_between:
        yield _failure_line("The body ends in the middle of a record.")
    elif not has_any:
        yield _failure_line("The body has no record.")


async def _next_chunk(chunks: AsyncIterator[bytes]) -> bytes | None:
    async with asyncio.timeout(SILENCE_S):
        return await anext(chunks, None)


def _parsed(call: Call, found: bytes) -> Parsed | BadRecordError:
    try:
        record = _DECODER.decode(found)
        return record, to_send(record, call.node.wall_clock_ms())
    except BadRecordError as error:
        return error
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return BadRecordError(f"The record: {error}.")


async def _send(
    sender: RecordSender, cluster_id: str, topic_name: str, read: Sequence[Parsed | BadRecordError]
) -> list[Produced]:
    outcomes = iter(await sender.send([one[1] for one in read if not isinstance(one, BadRecordError)]))
    return [
        Produced(error_code=BAD_REQUEST, message=str(one))
        if isinstance(one, BadRecordError)
        else result_of(cluster_id, topic_name, *one, next(outcomes))
        for one in read
    ]


def to_send(record: ProduceRecord, now_ms: int) -> RecordToSend:
    """Raises BadRecordError."""
    try:
        return RecordToSend(
            partition_id=record.partition_id,
            key=encoded(record.key),
            value=encoded(record.value),
            headers=tuple(
                (one.name, None if one.value is None else decoded_base64(one.value)) for one in record.headers
            ),
            timestamp_ms=now_ms if record.timestamp is None else _milliseconds(record.timestamp),
        )
    except UnusableDataError as error:
        raise BadRecordError(f"The record: {error}.") from None


def result_of(
    cluster_id: str, topic_name: str, record: ProduceRecord, sent: RecordToSend, outcome: Outcome
) -> Produced:
    if isinstance(outcome, KafkaError):
        return Produced(error_code=int(outcome.code), message=sentence(outcome))
    assert isinstance(outcome, Placed)
    result = Produced(
        error_code=WRITTEN,
        cluster_id=cluster_id,
        topic_name=topic_name,
        partition_id=outcome.partition_id,
        offset=outcome.offset,
        timestamp=_EPOCH + timedelta(milliseconds=outcome.timestamp_ms),
    )
    if record.key is not None:
        result.key = _data(record.key, sent.key)
    if record.value is not None:
        result.value = _data(record.value, sent.value)
    return result


def _data(given: RecordData, written: bytes | None) -> ProducedData:
    return ProducedData(type=given.type, size=len(written or b""))


def _milliseconds(time: datetime) -> int:
    """Raises BadRecordError for one that Kafka cannot have."""
    if time < _EPOCH:
        raise BadRecordError(f"The record: its timestamp {time.isoformat()} is before 1970.")
    return (time - _EPOCH) // timedelta(milliseconds=1)


def _failure_line(message: str) -> bytes:
    return msgspec.json.encode(Produced(error_code=BAD_REQUEST, message=message)) + b"\n"
