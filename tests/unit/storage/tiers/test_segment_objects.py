"""What a segment is made of in the tier."""

from __future__ import annotations

import pytest

from penstock.protocol.errors import CorruptData
from penstock.storage.log.rules.file_names import OFFSET_INDEX, TIME_INDEX
from penstock.storage.tiers.rules.segment_objects import pack_parts, unpack_parts
from penstock.storage.tiers.tiered_indexes import TieredIndexes

PARTS = {".index": b"123", ".timeindex": b"", "leader-epoch-checkpoint": b"0\n"}


def test_parts_come_back() -> None:
    assert unpack_parts(pack_parts(PARTS), "key") == PARTS


def test_any_flipped_bit_and_any_cut_is_found() -> None:
    packed = pack_parts(PARTS)
    for place in range(len(packed)):
        with pytest.raises(CorruptData):
            unpack_parts(packed[:place], "key")
        with pytest.raises(CorruptData):
            unpack_parts(packed[:place] + bytes((packed[place] ^ 4,)) + packed[place + 1 :], "key")


def test_indexes_lead_to_a_place_at_or_before_the_record() -> None:
    entries = ((5, 100), (9, 200))
    times = ((1_000, 5), (2_000, 9))
    parts = {
        OFFSET_INDEX: b"".join(offset.to_bytes(4, "big") + position.to_bytes(4, "big") for offset, position in entries),
        TIME_INDEX: b"".join(stamp.to_bytes(8, "big") + offset.to_bytes(4, "big") for stamp, offset in times),
    }
    indexes = TieredIndexes(parts, 50, "key")
    assert [indexes.position_of(offset) for offset in (50, 54, 55, 58, 59, 99)] == [0, 0, 100, 100, 200, 200]
    assert [indexes.offset_before(stamp) for stamp in (0, 1_000, 1_001, 2_001)] == [50, 50, 55, 59]


def test_an_index_that_is_cut_off_is_corrupt() -> None:
    with pytest.raises(CorruptData):
        TieredIndexes({OFFSET_INDEX: b"1234567"}, 0, "key")
