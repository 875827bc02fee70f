"""A queue judged key by key gives what the checker of the whole history gives: findings, counts and cycles."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from history_parts import checked_by_parts, rows_of
from told_history import QueueModel, Told, sent

from penstock.chaos.checkers.finding import KEPT_OF_A_TYPE, Checked
from penstock.chaos.checkers.queue.checker import check_queue
from penstock.chaos.checkers.queue.columns import columns
from penstock.chaos.histories.operation import Header, History


def known_there(history: History) -> frozenset[int]:
    """Transactions of unknown outcome that took place, as the columns of all keys know it."""
    table = columns(history)
    return frozenset(
        table.event[writer]
        for value, writer in enumerate(table.writer)
        if writer >= 0 and table.outcome[writer] == 2 and table.is_atomic(writer) and table.is_there(value)
    )


def findings(checked: Checked) -> list[bytes]:
    """Of those that are there too often it may be others that are kept, where one operation has several of them."""
    return sorted(
        msgspec.json.encode(finding, order="sorted")
        for finding in checked.findings
        if checked.counts[finding.type] <= KEPT_OF_A_TYPE
    )


def assert_same(history: History) -> Checked:
    whole = check_queue(history)
    by_parts = checked_by_parts(history, known_there(history))
    assert by_parts.counts == whole.counts
    assert findings(by_parts) == findings(whole)
    assert len(by_parts.findings) == len(whole.findings)
    assert by_parts.statistics["cycles"] == whole.statistics["cycles"]
    return whole


@pytest.mark.thorough
@pytest.mark.parametrize("bug", [None, "duplicate", "lost", "aborted", "uncommitted"])
def test_random_histories_have_the_same_findings(bug: str | None) -> None:
    seen: set[str] = set()
    for seed in range(20):
        history = QueueModel(Random(seed), bug=bug).run(300)
        if seed % 4 == 3:
            header = msgspec.structs.replace(history.header, isolation="read_uncommitted", idempotent=False)
            history = History(header, history.operations)
        seen |= assert_same(history).counts.keys()
    assert len(seen) >= 5, "a history without findings shows nothing"


def test_what_a_record_of_another_key_proves_counts() -> None:
    told = Told()
    told.do(1, "txn", [sent("t-0", 0, 10), sent("t-1", 0, 20)], "info")
    told.send(2, "t-0", 1, 11)
    told.poll(3, {"t-0": [[1, 11]]}, final=True)
    told.poll(3, {"t-1": [[0, 20]]}, final=True)
    assert assert_same(told.history()).counts["lost-write"] == 1
    assert "lost-write" not in checked_by_parts(told.history(), frozenset()).counts, "so it has to be asked of all keys"


def test_cycles_over_keys_are_found_with_what_proves_them() -> None:
    told = Told()
    told.begin(1, "txn", [sent("t-0", None, 10), ["poll"]])
    told.do(2, "txn", [sent("t-1", 0, 20), ["poll", {"t-0": [[0, 10]]}]])
    told.end(1, [sent("t-0", 0, 10), ["poll", {"t-1": [[0, 20]]}]])
    assert assert_same(told.history()).counts == {"G1c": 1}


def test_processes_that_end_in_the_middle_keep_what_they_asked_for() -> None:
    told = Told(Header(workload="queue", subscribe=True))
    told.begin(1, "send", [["send", "t-0", 10]])
    told.send(1, "t-0", 1, 11)
    told.begin(2, "poll", [["poll"]])
    told.poll(3, {"t-0": [[0, 10], [1, 11]], "t-1": [[0, 1]]}, final=True)
    assert assert_same(told.history()).counts == {"unexpected": 1}


def test_a_value_of_another_form_is_refused_with_a_sentence() -> None:
    told = Told()
    told.do(1, "send", 7)
    with pytest.raises(ValueError, match=r"expected micro-operations as docs/correctness\.md has them"):
        rows_of(told.history())
