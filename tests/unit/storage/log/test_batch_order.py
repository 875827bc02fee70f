"""What of a batch no CRC covers must fit those before it."""

from __future__ import annotations

import pytest

from penstock.protocol.batches import BatchHeader
from penstock.storage.log.rules.batch_order import epoch_fault, offsets_fault

HEADER = BatchHeader(
    base_offset=100,
    batch_length=49,
    partition_leader_epoch=3,
    magic=2,
    crc=0,
    attributes=0,
    last_offset_delta=9,
    base_timestamp=-1,
    max_timestamp=-1,
    producer_id=-1,
    producer_epoch=-1,
    base_sequence=-1,
    record_count=10,
)


@pytest.mark.parametrize(
    ("next_offset", "end_offset", "fault"),
    [
        (100, 110, None),
        (0, 1000, None),
        (101, 1000, "offsets 100 to 109 cannot follow offset 100"),
        (100, 109, "offsets 100 to 109 cannot be in [100, 109)"),
    ],
)
def test_offsets_of_a_batch_are_between_those_before_it_and_the_next_segment(
    next_offset: int, end_offset: int, fault: str | None
) -> None:
    assert offsets_fault(HEADER, next_offset, end_offset) == fault


def test_a_batch_does_not_end_before_it_begins() -> None:
    header = HEADER._replace(last_offset_delta=-1)
    assert offsets_fault(header, 0, 1000) == "offsets 100 to 99 cannot be in [0, 1000)"


@pytest.mark.parametrize(
    ("epoch", "fault"), [(-1, None), (3, None), (4, "leader epoch 4 is followed by 3 at offset 100")]
)
def test_leader_epochs_do_not_fall(epoch: int, fault: str | None) -> None:
    assert epoch_fault(HEADER, epoch) == fault
