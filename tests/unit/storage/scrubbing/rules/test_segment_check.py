"""What the indexes of a segment must have, by its batches."""

from __future__ import annotations

import pytest

from penstock.protocol.batches import BatchHeader, read_header
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.rules.aborted_transaction import AbortedTransaction
from penstock.storage.log.rules.producer_state import EndTransactionMarker
from penstock.storage.scrubbing.rules.segment_check import Transactions

PRODUCER = 7
ABORT = EndTransactionMarker(is_abort=True, coordinator_epoch=0, timestamp=0)


def batch(offset: int, *, record_count: int = 1, is_control: bool = False) -> BatchHeader:
    data = write_batch(
        [Record(offset, 0, b"key", b"value")], producer_id=PRODUCER, producer_epoch=0, base_sequence=0,
        is_transactional=True,
    )  # fmt: skip
    header = read_header(data, 0)._replace(record_count=record_count)
    return header._replace(attributes=header.attributes | 0x20) if is_control else header


@pytest.mark.parametrize(("record_count", "is_in_index"), [(1, True), (0, False)])
def test_an_aborted_transaction_of_which_compaction_left_no_record_need_not_be_in_the_index(
    record_count: int, *, is_in_index: bool
) -> None:
    """The header of a producer's last batch stays, for its sequence."""
    transactions = Transactions()
    transactions.add(batch(3, record_count=record_count), None)
    transactions.add(batch(4, is_control=True), ABORT)
    assert (transactions.index_fault([], is_compacted=True) is not None) == is_in_index
    known = [AbortedTransaction(PRODUCER, 3, 4, 5)]
    assert transactions.aborted == (known if is_in_index else [])
    assert transactions.index_fault(known, is_compacted=True) is None
