"""The demo notices whatever could go wrong with its records."""

import pytest

from penstock.chaos.demo.ledger import Ledger

Sent = list[tuple[bytes, bytes, int | None]]
SENT: Sent = [(b"a", b"1", 10), (b"b", b"2", 20), (b"a", b"3", 30), (b"a", b"4", None)]


def account_of(records: Sent) -> Ledger:
    ledger = Ledger()
    for key, value, timestamp_ms in records:
        ledger.add(key, value, timestamp_ms)
    return ledger


def test_same_records_are_no_finding() -> None:
    assert account_of(SENT).findings(account_of(SENT)) == []
    assert (account_of(SENT).key_count, account_of(SENT).record_count) == (2, 4)


def test_order_between_keys_is_free() -> None:
    assert account_of(SENT).findings(account_of([SENT[1], SENT[0], *SENT[2:]])) == []


@pytest.mark.parametrize(
    ("read", "finding"),
    [
        (SENT[:1] + SENT[2:], "no record came back for 1 of 2 keys, such as 'b'"),
        ([*SENT, (b"c", b"", None)], "were not sent for 1 of 2 keys, such as 'c'"),
        (SENT[:3], "another number of records came back for 1 of 2 keys, such as 'a'"),
        ([*SENT, SENT[1]], "another number of records came back for 1 of 2 keys, such as 'b'"),
        ([SENT[2], SENT[1], SENT[0], SENT[3]], "in another order for 1 of 2 keys, such as 'a'"),
        ([(b"a", b"0", 10), *SENT[1:]], "came back changed"),
        ([(b"a", b"1", 11), *SENT[1:]], "came back changed"),
    ],
    ids=["key lost", "key invented", "record lost", "duplicate", "reordered", "value changed", "timestamp changed"],
)
def test_difference_is_found(read: Sent, finding: str) -> None:
    (found,) = account_of(SENT).findings(account_of(read))
    assert finding in found
