"""What a killed application leaves behind is read as far as it was told."""

from __future__ import annotations

import pytest

from penstock.chaos.checkers.copies import Attempt, Output, Place
from penstock.chaos.checkers.records import Stored
from penstock.chaos.workloads.transactional_copier import parse_output, read_attempts


def test_history_tells_what_came_of_each_transaction() -> None:
    lines = [
        *("begin 1-1\n", "commit 1-1 20\n", "committed 1-1\n"),
        *("begin 1-2\n", "aborted 1-2\n"),
        *("begin 1-3\n", "commit 1-3 7\n", "again KafkaError{code=_TIMED_OUT}\n", "aborted 1-3\n"),
        *("begin 1-4\n", "commit 1-4 8\n"),
    ]
    assert read_attempts(lines) == {
        "1-1": Attempt(output_count=20, is_committed=True),
        "1-2": Attempt(is_committed=False),
        "1-3": Attempt(output_count=7, is_committed=False),
        "1-4": Attempt(output_count=8),
    }


def test_line_that_was_cut_off_was_never_told() -> None:
    assert read_attempts(["begin 1-1\n", "commit 1-1 20"]) == {"1-1": Attempt()}


def test_output_tells_its_input_and_its_transaction() -> None:
    output = parse_output(2, Stored(9, b"1 33 4-5 steady 7"))
    assert output == Output(Place(2, 9), Place(1, 33), "4-5")


def test_value_that_no_copier_wrote_is_refused() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        parse_output(0, Stored(0, b"steady 7"))
