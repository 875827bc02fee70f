"""Transactions that are over are remembered until their end is committed, and no longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from produced_batches import produced

from penstock.protocol.records import Record, write_batch
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.transaction_verification import UNVERIFIED

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode

PRODUCER = 7
COUNT = 20


def batch(offset: int, sequence: int) -> bytes:
    return write_batch(
        [Record(offset, 0, b"k", b"v")],
        leader_epoch=0,
        producer_id=PRODUCER,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )


def marker(offset: int) -> bytes:
    commit = write_end_transaction_marker(PRODUCER, 0, is_commit=True, coordinator_epoch=0, now_ms=0)
    return offset.to_bytes(8, "big") + commit[8:12] + (0).to_bytes(4, "big") + commit[16:]


def test_a_follower_forgets_them_behind_its_leaders_high_watermark(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(1, 2))
    partition = node.hosted()
    for number in range(COUNT):
        offset = 2 * number
        partition.append_as_follower(memoryview(batch(offset, number) + marker(offset + 1)), 0)
        partition.on_leader_offsets(high_watermark=max(offset - 1, 0), log_start_offset=0)
        assert len(partition.log.producers.completed) <= 3
    assert partition.log.last_stable_offset(2 * COUNT - 2) == 2 * COUNT - 2
    assert partition.log.last_stable_offset(2 * COUNT - 1) == 2 * COUNT - 2
    assert partition.log.last_stable_offset(2 * COUNT) == 2 * COUNT


def test_a_leader_forgets_them_without_readers(node: DataNode) -> None:
    node.create_topic()
    partition = node.hosted()
    for number in range(COUNT):
        partition.append(produced(batch(0, number)), 0, verification=UNVERIFIED)
        partition.append_of_coordinator(
            write_end_transaction_marker(PRODUCER, 0, is_commit=True, coordinator_epoch=0, now_ms=0), 0
        )
        assert len(partition.log.producers.completed) == 0
