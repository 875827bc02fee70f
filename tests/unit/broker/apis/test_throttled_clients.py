"""Produce and Fetch of clients with a quota: responses at once with the throttle time, a muted connection (KIP-219)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.broker.network.request import CloseConnection, RequestContext
from penstock.broker.quotas.client_quotas import ClientQuotas
from penstock.protocol.records import Record, write_batch

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode

BATCH = write_batch([Record(0, 1_700_000_000_000, b"k", bytes(1000))])


def limit(node: DataNode, **quotas: float) -> None:
    """The quotas of the test's client, whose window is as Kafka's default."""
    limits = ClientQuotas(sample_count=11, window_ms=1000, time_s=lambda: node.now_ms / 1000)
    limits.set_quotas({(("client-id", None),): quotas})
    context = RequestContext(listener_name="PLAINTEXT", peer_host="127.0.0.1", client_id=node.client_id)
    node.quota = limits.find(context)
    assert node.quota is not None


@pytest.fixture
def filled(node: DataNode) -> DataNode:
    """Topic `a` with eight batches of a thousand bytes."""
    node.create_topic()
    for _ in range(8):
        node.produce(BATCH)
    return node


def test_a_produce_above_the_rate_is_appended_and_told_to_wait(filled: DataNode) -> None:
    limit(filled, producer_byte_rate=200.0)
    first = filled.begin_produce(BATCH)
    assert (first.answer.throttle_time.total_seconds(), first.muted_ms) == (0, 0)
    second = filled.begin_produce(BATCH)
    throttle_time_ms = second.answer.throttle_time.total_seconds() * 1000
    size = len(second.request.body)
    assert second.answer.responses[0].partition_responses[0].base_offset == 9
    assert throttle_time_ms == second.muted_ms == (2 * size - 2000) * 1000 // 200


def test_a_produce_of_several_partitions_is_counted_too(filled: DataNode) -> None:
    limit(filled, producer_byte_rate=200.0)
    filled.begin_produce(BATCH, more=((7, BATCH),))
    throttled = filled.begin_produce(BATCH, more=((7, BATCH),))
    assert throttled.muted_ms > 0
    assert throttled.answer.throttle_time.total_seconds() * 1000 == throttled.muted_ms


def test_a_produce_without_a_response_mutes_too(filled: DataNode) -> None:
    limit(filled, producer_byte_rate=200.0, request_percentage=0.1)
    assert filled.quota is not None
    filled.quota.on_handled(5.0)
    assert filled.begin_produce(BATCH, acks=0).muted_ms == 0, "request time of acks=0 is exempt"
    assert filled.begin_produce(BATCH, acks=0).muted_ms > 0
    several = filled.begin_produce(BATCH, acks=0, more=((0, BATCH),))
    assert several.muted_ms > 0
    assert several.request.answer == ()


def test_a_produce_without_a_response_that_fails_closes_the_connection(filled: DataNode) -> None:
    limit(filled, producer_byte_rate=1.0)
    assert isinstance(filled.begin_produce(BATCH, index=7, acks=0).request.answer, CloseConnection)


def test_a_fetch_above_the_rate_is_answered_without_partitions(filled: DataNode) -> None:
    limit(filled, consumer_byte_rate=200.0)
    first = filled.begin_fetch((0, 0), max_wait_ms=0)
    assert len(first.answer.responses[0].partitions[0].records) == 2000
    assert first.muted_ms == 0
    throttled = filled.begin_fetch((0, 1), max_wait_ms=0)
    assert throttled.answer.responses == ()
    assert throttled.answer.throttle_time.total_seconds() * 1000 == throttled.muted_ms > 0
    filled.now_ms += 11_000
    assert filled.begin_fetch((0, 1), max_wait_ms=0).muted_ms == 0


def test_a_fetch_reads_no_more_than_the_window_allows(filled: DataNode) -> None:
    """Else it would always be throttled: the client could never read on."""
    limit(filled, consumer_byte_rate=400.0)
    answer = filled.begin_fetch((0, 0), max_wait_ms=0)
    # The last batch is cut, as by max_bytes.
    assert len(answer.answer.responses[0].partitions[0].records) == 4000
    assert answer.muted_ms == 0


def test_the_session_of_a_throttled_fetch_goes_on(filled: DataNode) -> None:
    limit(filled, consumer_byte_rate=300.0)
    first = filled.begin_fetch((0, 0), max_wait_ms=0, session_epoch=0)
    session_id = first.answer.session_id
    assert session_id > 0
    throttled = filled.begin_fetch((0, 2), max_wait_ms=0, session_id=session_id, session_epoch=1)
    assert throttled.muted_ms > 0
    assert (throttled.answer.session_id, throttled.answer.error_code) == (session_id, 0)
    filled.now_ms += 11_000
    after = filled.begin_fetch((0, 2), max_wait_ms=0, session_id=session_id, session_epoch=2)
    assert len(after.answer.responses[0].partitions[0].records) > 0


def test_no_session_begins_with_a_throttled_fetch(filled: DataNode) -> None:
    limit(filled, consumer_byte_rate=200.0)
    filled.begin_fetch((0, 0), max_wait_ms=0)
    throttled = filled.begin_fetch((0, 1), max_wait_ms=0, session_epoch=0)
    assert throttled.muted_ms > 0
    assert throttled.answer.session_id == 0
    assert filled.data_path.sessions.statistics().session_count == 0


def test_a_fetch_that_waits_is_throttled_when_it_is_answered(filled: DataNode) -> None:
    limit(filled, request_percentage=0.1)
    waiting = filled.begin_fetch((0, 8))
    assert not waiting.is_answered
    assert filled.quota is not None
    filled.quota.on_handled(5.0)
    filled.produce(BATCH)
    assert waiting.answer.responses == ()
    assert waiting.muted_ms == 1000
