"""The comparison of copies finds each fault that is planted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from copied_records import Copied, differences

WANTED = [
    Copied(number % 3, None if number % 5 == 0 else b"k%d" % number, b"v%d" % number, (("h", None),), 1_000 + number)
    for number in range(30)
]
CHANGES = {
    "key": {"key": b"other"},
    "no key": {"key": None},
    "value": {"value": b""},
    "no value": {"value": None},
    "header": {"headers": (("h", b""),)},
    "no header": {"headers": ()},
    "timestamp": {"timestamp_ms": 1},
    "partition": {"partition": 2},
}


def test_the_same_records_differ_in_nothing() -> None:
    assert differences(WANTED, [*WANTED]) == []
    # Logs of different partitions have no order between them.
    assert differences(WANTED, sorted(WANTED, key=lambda one: one.partition)) == []


def test_a_lost_record_is_found() -> None:
    assert differences(WANTED, WANTED[:7] + WANTED[8:]) == [f"lost: {WANTED[7]}"]


def test_a_doubled_record_is_found() -> None:
    assert differences(WANTED, [*WANTED, WANTED[7]]) == [f"doubled or made up: {WANTED[7]}"]


def test_another_order_is_found() -> None:
    assert differences(WANTED, [*WANTED[3:4], *WANTED[1:3], *WANTED[:1], *WANTED[4:]]) == [
        "partition 0 has another order"
    ]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_record_is_found(change: str) -> None:
    changed = replace(WANTED[7], **CHANGES[change])  # type: ignore[arg-type]
    assert len(differences(WANTED, [*WANTED[:7], changed, *WANTED[8:]])) == 2
