"""Prepared requests are what the protocol's own readers understand, and answers are taken as its writers mean them."""

from __future__ import annotations

import pytest

from penstock.bench.wire import (
    FetchSessionId,
    ProduceFrame,
    ProducerId,
    RequestRefusedError,
    batch,
    fetch_frame,
    fetch_session_id,
    high_watermarks,
    next_offsets,
)
from penstock.protocol.batches import read_header
from penstock.protocol.fetch import PartitionFetchResponse, decode_fetch, encode_fetch_response
from penstock.protocol.messages import decode_header
from penstock.protocol.produce import PartitionProduceResponse, decode_produce, encode_produce_response

SIZE = 4


class Slice(bytes):
    """Stored bytes as an answer carries them."""

    @property
    def size(self) -> int:
        return len(self)


def fetch_answer(*partitions: PartitionFetchResponse[Slice]) -> bytes:
    return b"".join(encode_fetch_response(11, 0, [("somewhere", None, partitions)]))


def test_prepared_produce_request_is_read_as_it_was_meant() -> None:
    data = batch([b"one", b"two"])
    request = ProduceFrame.of("somewhere", {0: data, 3: data})
    frame = request.data[SIZE:]
    assert int.from_bytes(request.data[:SIZE], "big") == len(frame)
    header = decode_header(frame)
    assert (header.api_key, header.api_version) == (0, 8)
    read = decode_produce(8, frame, header.body_offset)
    assert (read.acks, [topic.name for topic in read.topics]) == (-1, ["somewhere"])
    assert [(index, bytes(records or b"")) for index, records in read.topics[0].partitions] == [(0, data), (3, data)]
    assert read_header(data, 0).record_count == 2


def test_prepared_batch_of_an_idempotent_producer_says_so() -> None:
    header = read_header(batch([b"one"], producer_id=ProducerId(7, 2), base_sequence=30), 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 30)


def test_answers_to_produce_have_the_size_that_was_expected() -> None:
    request = ProduceFrame.of("somewhere", {0: b"", 3: b""})
    partitions = [PartitionProduceResponse(index, base_offset=7, log_start_offset=0) for index in (0, 3)]
    answer = encode_produce_response(8, 0, [("somewhere", None, partitions)])
    assert len(answer) == request.answer_size
    assert request.first_offset(answer) == 7


def test_one_refusal_among_many_answers_is_seen() -> None:
    request = ProduceFrame.of("somewhere", {0: b""})
    good, bad = (
        encode_produce_response(8, 0, [("somewhere", None, [PartitionProduceResponse(0, error_code=code)])])
        for code in (0, 6)
    )
    request.check(good * 50)
    with pytest.raises(RequestRefusedError, match="error code 6"):
        request.check(good * 30 + bad + good * 19)


def test_prepared_fetch_request_is_read_as_it_was_meant() -> None:
    frame = fetch_frame("somewhere", {2: 40, 5: 0})[SIZE:]
    read = decode_fetch(11, frame, decode_header(frame).body_offset)
    assert [(part.partition_index, part.fetch_offset) for part in read.topics[0].partitions] == [(2, 40), (5, 0)]
    assert (read.replica_id, read.session_epoch, read.min_bytes) == (-1, -1, 1)


def test_a_request_of_a_session_names_what_has_moved_and_its_answer_what_has_changed() -> None:
    for positions in ({2: 40}, {}):
        frame = fetch_frame("somewhere", positions, session=FetchSessionId(9, 3))[SIZE:]
        read = decode_fetch(11, frame, decode_header(frame).body_offset)
        assert (read.session_id, read.session_epoch) == (9, 3)
        assert {
            part.partition_index: part.fetch_offset for topic in read.topics for part in topic.partitions
        } == positions
    unchanged = b"".join(encode_fetch_response(11, 0, [], session_id=9))
    assert fetch_session_id(unchanged) == 9
    assert next_offsets("somewhere", unchanged) == {}
    with pytest.raises(RequestRefusedError, match="error code 70"):
        next_offsets("somewhere", b"".join(encode_fetch_response(11, 0, [], error_code=70)))


def test_reading_goes_on_behind_the_last_whole_batch() -> None:
    data = batch([b"one", b"two"])
    second = (2).to_bytes(8, "big") + data[8:]
    cut = (4).to_bytes(8, "big") + data[8:-1]
    answer = fetch_answer(
        PartitionFetchResponse(0, high_watermark=7, slices=[Slice(data + second + cut)]),
        PartitionFetchResponse(1, slices=[]),
    )
    assert next_offsets("somewhere", answer) == {0: 4}
    assert high_watermarks("somewhere", answer) == {0: 7, 1: -1}


def test_refused_fetch_is_seen() -> None:
    with pytest.raises(RequestRefusedError, match="error code 1"):
        next_offsets("somewhere", fetch_answer(PartitionFetchResponse(0, error_code=1)))
