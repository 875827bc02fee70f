"""Operations as a person reads them."""

from __future__ import annotations

from typing import Any

from penstock.chaos.histories.operation import Operation, Pair
from penstock.chaos.report.operation_text import focus_of, operation_text


def pair(f: str, value: Any) -> Pair:
    return Pair(Operation(0, "invoke", 0, 0, f, value), Operation(1, "ok", 0, 1, f, value))


def text(f: str, value: Any, *, key: str | None = None, focus: tuple[int, ...] = ()) -> str:
    return operation_text(pair(f, value), key=key, focus=focus)


def test_sends_have_their_offsets_and_transactions_all_their_steps() -> None:
    assert text("send", [["send", "t-0", 7]]) == "t-0 7"
    assert text("txn", [["send", "t-0", [3, 7]], ["poll", {}]]) == "t-0 7 at offset 3 · nothing"
    assert (
        text("txn", [["append", 1, 2], ["r", 1, [1, 2]], ["r", 2, None]]) == "append 1 2 · read 1 → [1 2] · read 2 → ?"
    )


def test_of_a_poll_the_records_around_the_focus_are_shown() -> None:
    records = [[offset, offset + 100] for offset in range(50) if offset != 20]
    value = [["poll", {"t-0": records, "t-1": [[0, 1], [1, 2]]}]]
    shown = text("poll", value, key="t-0", focus=(20,))
    assert shown == "t-0: … 17=117 18=118 19=119 21=121 22=122 23=123 … (49 records), and 2 of other partitions"


def test_of_a_poll_without_a_focus_the_ends_are_shown() -> None:
    value = [["poll", {"t-0": [[offset, offset] for offset in range(50)]}]]
    assert text("poll", value) == "t-0: 0=0 1=1 2=2 … 47=47 48=48 49=49 (50 records)"
    assert text("poll", [["poll", {"t-0": [[0, 1], [1, 2]]}]]) == "t-0: 0=1 1=2"


def test_what_is_no_list_of_steps_is_shown_as_json() -> None:
    assert text("write", {"k": 1, "v": "é"}) == '{"k": 1, "v": "é"}'
    assert text("assign", ["t-0", "t-1"]) == '["t-0", "t-1"]'
    assert text("poll", [["poll"]]) == "poll"
    assert text("crash", None) == ""


def test_evidence_is_about_the_offsets_of_its_sends_its_detail_and_its_single_reads() -> None:
    pairs = [
        pair("send", [["send", "t-0", [3, 7]]]),
        pair("send", [["send", "t-1", [4, 7]]]),
        pair("poll", [["poll", {"t-0": [[9, 1]]}]]),
        pair("poll", [["poll", {"t-0": [[11, 1], [12, 1]]}]]),
    ]
    assert focus_of(pairs, "t-0", {"offset": 5, "value": 8}) == {3, 5, 9}
    assert focus_of([], "t-0", {"offsets": [1, 2]}) == {1, 2}
