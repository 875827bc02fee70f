"""A log with transactions and several segments in the folder of a node that has stopped."""

from __future__ import annotations

from node_disk import NOW_MS, TOPIC_ID, NodeDisk
from produced_batches import produced

from penstock.protocol.ids import LeaderEpoch, TopicId
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.transaction_verification import UNVERIFIED

FOLDER = "/data/table-0"
COMPACTED = LogConfig(
    cleanup_policy=frozenset({"compact"}), segment_bytes=800, index_interval_bytes=100, file_delete_delay_ms=0
)


def write_transaction(log: Log, sequence: int, *, is_commit: bool, leader_epoch: int = 0, compression: int = 0) -> int:
    """Of three records of two keys; the next sequence."""
    records = [
        Record(number, NOW_MS + sequence + number, f"key-{number % 2}".encode(), b"%d" % (sequence + number))
        for number in range(3)
    ]
    batch = write_batch(
        records,
        compression=compression,
        producer_id=5,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    log.append_as_leader(produced(batch), leader_epoch=leader_epoch, now_ms=NOW_MS, verification=UNVERIFIED)
    marker = write_end_transaction_marker(5, 0, is_commit=is_commit, coordinator_epoch=0, now_ms=NOW_MS)
    log.append_of_coordinator(marker, leader_epoch=leader_epoch, now_ms=NOW_MS)
    return sequence + len(records)


def stopped_node(disk: NodeDisk, *, transactions: int = 30, config: LogConfig = COMPACTED) -> int:
    """Fill `FOLDER` and stop in good order; the log end offset. Every third transaction is aborted, the leader epoch
    rises in the middle."""
    disk.config = config
    disk.start()
    log = disk.log("table", topic_id=TopicId(TOPIC_ID))
    sequence = 0
    for number in range(transactions):
        epoch = 0 if number < transactions // 2 else 3
        if epoch != log.leader_epochs.latest_epoch:
            log.assign_leader_epoch(LeaderEpoch(epoch))
        sequence = write_transaction(
            log, sequence, is_commit=number % 3 != 1, leader_epoch=epoch, compression=number % 5
        )
    assert log.segment_count > 5
    end_offset = log.log_end_offset
    disk.stop(table=end_offset)
    return end_offset
