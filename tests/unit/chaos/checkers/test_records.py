"""Each anomaly is found where it is, and a history without one passes."""

from __future__ import annotations

import pytest

from penstock.chaos.checkers.records import Anomaly, Sent, Stored, judge
from penstock.protocol.structs import replace

SENT = [Sent(producer="a", number=number, value=b"a%d" % number, offset=number) for number in range(4)]
STORED = [Stored(number, b"a%d" % number) for number in range(4)]


def anomalies(sent: list[Sent], stored: list[Stored], *, is_idempotent: bool = True) -> set[Anomaly]:
    return {finding.anomaly for finding in judge(sent, stored, is_idempotent=is_idempotent)}


def test_history_that_kept_every_promise_has_no_finding() -> None:
    assert judge(SENT, STORED) == []


def test_record_without_acknowledgement_may_be_stored_or_not() -> None:
    open_end = [*SENT[:3], replace(SENT[3], offset=None)]
    assert judge(open_end, STORED) == judge(open_end, STORED[:3]) == []


def test_offsets_need_not_begin_at_0() -> None:
    assert judge([replace(one, offset=one.number + 7) for one in SENT], [Stored(o + 7, v) for o, v in STORED]) == []


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (STORED[:3], {Anomaly.LOST}),
        ([*STORED[:2], STORED[3]], {Anomaly.LOST, Anomaly.HOLE}),
        ([*STORED, Stored(4, b"a1")], {Anomaly.DUPLICATED, Anomaly.REORDERED}),
        ([Stored(0, b"a1"), Stored(1, b"a0"), *STORED[2:]], {Anomaly.MOVED, Anomaly.REORDERED}),
        ([*STORED, Stored(4, b"other")], {Anomaly.FOREIGN}),
        ([*STORED, Stored(5, b"other")], {Anomaly.FOREIGN, Anomaly.HOLE}),
    ],
)
def test_anomaly_is_found(stored: list[Stored], expected: set[Anomaly]) -> None:
    assert anomalies(SENT, stored) == expected


def test_without_idempotence_a_retry_may_store_a_record_again_and_late() -> None:
    assert anomalies(SENT, [*STORED, Stored(4, b"a1")], is_idempotent=False) == set()


def test_finding_says_what_and_where() -> None:
    (finding,) = judge(SENT, STORED[:3])
    assert str(finding) == "LOST: an acknowledged record is not stored: a 3, acknowledged at offset 3"
