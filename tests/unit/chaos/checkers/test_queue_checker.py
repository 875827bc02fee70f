"""The checker of queues: each planted anomaly is found under its name with what proves it, and a correct model's
histories are clean."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from told_history import QueueModel, Told, found, sent

from penstock.chaos.checkers.finding import Finding
from penstock.chaos.checkers.queue.checker import check_queue
from penstock.chaos.histories.operation import Header


def only(told: Told, type_: str, *, beside: tuple[str, ...] = ()) -> Finding:
    """The one anomaly of a history; `beside` are types that follow from it."""
    checked = check_queue(told.history())
    assert sorted(checked.counts) == sorted((type_, *beside))
    finding = found(checked)[type_]
    for other in checked.findings:
        if other.type == type_:
            assert other.allowed == (other.why_allowed is not None)
    return finding


def test_a_quiet_history_is_clean() -> None:
    told = Told()
    told.send(1, "t-0", 0, 10)
    told.send(1, "t-0", 1, 11)
    told.poll(2, {"t-0": [[0, 10], [1, 11]]}, final=True)
    checked = check_queue(told.history())
    assert not checked.counts
    assert (checked.statistics["sends"], checked.statistics["reads"]) == (2, 2)


def test_lost_write() -> None:
    told = Told()
    lost = told.send(1, "t-0", 0, 10)
    told.send(1, "t-0", 1, 11)
    read = told.poll(2, {"t-0": [[1, 11]]})
    finding = only(told, "lost-write", beside=("unseen",))
    assert (finding.operations, finding.key, finding.allowed) == ((lost, read), "t-0", False)


def test_a_send_without_an_outcome_is_lost_only_if_the_rest_of_its_transaction_was_read() -> None:
    told = Told()
    told.do(1, "txn", [sent("t-0", 0, 10), sent("t-1", 0, 20)], "info")
    told.send(2, "t-0", 1, 11)
    told.poll(3, {"t-0": [[1, 11]]}, final=True)
    assert not check_queue(told.history()).counts, "it may not have happened"
    told.poll(3, {"t-1": [[0, 20]]}, final=True)
    assert found(check_queue(told.history()))["lost-write"].detail["value"] == 10


def test_a_send_of_several_that_is_no_transaction_may_take_place_in_part() -> None:
    told = Told()
    sends = told.do(1, "send", [sent("t-0", None, 10), sent("t-0", None, 11), sent("t-0", 2, 12)], "info")
    told.send(2, "t-0", 3, 13)
    told.poll(3, {"t-0": [[1, 11], [3, 13]]}, final=True)
    finding = found(check_queue(told.history()))["lost-write"]
    assert (finding.operations[0], finding.detail["value"]) == (sends, 12), "10 has no acknowledgement, 12 has one"
    assert check_queue(told.history()).counts["lost-write"] == 1


def test_unseen_counts_where_final_reads_had_time_to_catch_up() -> None:
    told = Told()
    told.send(1, "t-0", 0, 10)
    late = told.send(1, "t-0", 1, 11)
    told.poll(2, {"t-0": [[0, 10]]})
    finding = only(told, "unseen")
    assert finding.why_allowed == "the run had no final reads, so it may only be late"
    told.poll(3, {"t-0": [[0, 10]]}, final=True)
    finding = only(told, "unseen")
    assert (finding.operations, finding.allowed) == ((late,), False)


def test_duplicate() -> None:
    told = Told()
    send = told.send(1, "t-0", 0, 10)
    read = told.poll(2, {"t-0": [[0, 10], [1, 10]]})
    finding = only(told, "duplicate")
    assert (finding.operations, finding.detail["offsets"]) == ((send, read), [0, 1])
    told.header = Header(workload="queue", idempotent=False)
    assert found(check_queue(told.history()))["duplicate"].allowed


def test_inconsistent_offsets() -> None:
    told = Told()
    first, second = told.send(1, "t-0", 0, 10), told.send(2, "t-0", 0, 11)
    told.poll(3, {"t-0": [[0, 10]]})
    told.poll(4, {"t-0": [[0, 11]]})
    finding = only(told, "inconsistent-offsets")
    assert (finding.operations, finding.detail) == ((first, second), {"offset": 0, "values": [10, 11]})


def three_sends(told: Told) -> None:
    for offset in range(3):
        told.send(1, "t-0", offset, 10 + offset)


def test_poll_skip() -> None:
    told = Told()
    three_sends(told)
    told.poll(3, {"t-0": [[0, 10], [1, 11], [2, 12]]})
    before = told.poll(2, {"t-0": [[0, 10]]})
    after = told.poll(2, {"t-0": [[2, 12]]})
    finding = only(told, "poll-skip")
    assert (finding.operations, finding.allowed) == ((before, after), False)
    assert "skipped 1, at offsets [1]" in finding.message


def test_nonmonotonic_poll() -> None:
    told = Told()
    three_sends(told)
    before = told.poll(2, {"t-0": [[0, 10], [1, 11], [2, 12]]})
    after = told.poll(2, {"t-0": [[1, 11], [2, 12]]})
    assert only(told, "nonmonotonic-poll").operations == (before, after)


@pytest.mark.parametrize("second", [[[2, 12]], [[0, 10]]], ids=["skip", "back"])
def test_a_group_may_rebalance_between_polls_and_an_assignment_begins_anew(second: Any) -> None:
    told = Told()
    told.do(2, "subscribe", ["t"])
    three_sends(told)
    told.poll(3, {"t-0": [[0, 10], [1, 11], [2, 12]]}, final=True)
    told.poll(2, {"t-0": [[0, 10]]})
    told.poll(2, {"t-0": second})
    assert not found(check_queue(told.history()), allowed=False)
    assert len(found(check_queue(told.history()), allowed=True)) == 1
    told.do(2, "assign", ["t-0"])
    told.poll(2, {"t-0": [[0, 10]]})
    assert len(check_queue(told.history()).findings) == 1, "the assignment changed nothing of what was found"


def test_int_poll_skip_and_int_nonmonotonic_poll() -> None:
    told = Told()
    three_sends(told)
    told.poll(3, {"t-0": [[0, 10], [1, 11], [2, 12]]})
    skip = told.do(2, "txn", [["poll", {"t-0": [[0, 10]]}], ["poll", {"t-0": [[2, 12]]}]])
    assert only(told, "int-poll-skip").operations == (skip,)
    back = told.do(4, "txn", [["poll", {"t-0": [[0, 10], [1, 11]]}], ["poll", {"t-0": [[1, 11], [2, 12]]}]])
    assert only(told, "int-nonmonotonic-poll", beside=("int-poll-skip",)).operations == (back,)


def test_even_a_subscribed_consumer_skips_nothing_within_one_poll() -> None:
    told = Told(Header(workload="queue", subscribe=True))
    three_sends(told)
    told.poll(3, {"t-0": [[0, 10], [1, 11], [2, 12]]})
    told.do(2, "txn", [["poll", {"t-0": [[0, 10]]}], ["poll", {"t-0": [[2, 12]]}]])
    assert only(told, "int-poll-skip").allowed
    told.poll(4, {"t-0": [[0, 10], [2, 12]]})
    assert found(check_queue(told.history()), allowed=False).keys() == {"int-poll-skip"}


def test_nonmonotonic_send_and_int_nonmonotonic_send() -> None:
    told = Told()
    before, after = told.send(1, "t-0", 5, 10), told.send(1, "t-0", 3, 11)
    told.poll(2, {"t-0": [[3, 11], [5, 10]]})
    finding = only(told, "nonmonotonic-send", beside=("G0-process",))
    assert finding.operations == (before, after)
    told = Told()
    both = told.do(1, "txn", [sent("t-0", 5, 10), sent("t-0", 3, 11)])
    told.poll(2, {"t-0": [[3, 11], [5, 10]]})
    assert only(told, "int-nonmonotonic-send").operations == (both,)


def test_int_send_skip_is_allowed() -> None:
    told = Told()
    told.begin(1, "txn", [sent("t-0", None, 10), sent("t-0", None, 12)])
    told.send(2, "t-0", 1, 11)
    both = told.end(1, [sent("t-0", 0, 10), sent("t-0", 2, 12)])
    told.poll(3, {"t-0": [[0, 10], [1, 11], [2, 12]]})
    finding = only(told, "int-send-skip", beside=("G0",))
    assert (finding.operations, finding.allowed) == ((both,), True)


def test_g1a_an_aborted_read() -> None:
    told = Told()
    failed = told.do(1, "txn", [sent("t-0", None, 10)], "fail")
    read = told.poll(2, {"t-0": [[0, 10]]})
    assert only(told, "G1a").operations == (failed, read)
    told.header = Header(workload="queue", isolation="read_uncommitted", transactions=True)
    assert only(told, "G1a").allowed


def test_precommitted_read() -> None:
    told = Told()
    own = told.do(1, "txn", [sent("t-0", 0, 10), ["poll", {"t-0": [[0, 10]]}]])
    assert only(told, "precommitted-read").operations == (own,)


def test_unexpected_what_was_never_sent() -> None:
    told = Told()
    read = told.poll(2, {"t-0": [[0, 10]]})
    assert only(told, "unexpected").operations == (read,)


def test_what_a_process_was_not_answered_is_no_less_sent_when_it_goes_on() -> None:
    told = Told()
    told.begin(1, "send", [["send", "t-0", 10]])
    told.send(1, "t-0", 1, 11)
    told.poll(2, {"t-0": [[0, 10], [1, 11]]}, final=True)
    assert not check_queue(told.history()).counts


def test_g0_transactions_that_interleave_their_writes_are_allowed() -> None:
    told = Told()
    told.begin(1, "txn", [sent("t-0", None, 10), sent("t-1", None, 20)])
    second = told.do(2, "txn", [sent("t-0", 1, 11), sent("t-1", 0, 21)])
    first = told.end(1, [sent("t-0", 0, 10), sent("t-1", 1, 20)])
    told.poll(3, {"t-0": [[0, 10], [1, 11]], "t-1": [[0, 21], [1, 20]]})
    finding = only(told, "G0")
    assert (sorted(finding.operations), finding.allowed) == ([second, first], True)


def test_g0_realtime_of_single_sends_is_not_allowed() -> None:
    """Jepsen allows every G0; but here nothing is left to isolate."""
    told = Told()
    before, after = told.send(1, "t-0", 5, 10), told.send(2, "t-0", 3, 11)
    told.poll(3, {"t-0": [[3, 11], [5, 10]]})
    finding = only(told, "G0-realtime")
    assert (sorted(finding.operations), finding.allowed) == ([before, after], False)
    assert [step["kind"] for step in finding.detail["steps"]] in (["ww", "realtime"], ["realtime", "ww"])


def read_each_other(told: Told) -> tuple[int, int]:
    told.begin(1, "txn", [sent("t-0", None, 10), ["poll"]])
    second = told.do(2, "txn", [sent("t-1", 0, 20), ["poll", {"t-0": [[0, 10]]}]])
    return told.end(1, [sent("t-0", 0, 10), ["poll", {"t-1": [[0, 20]]}]]), second


def test_g1c_transactions_that_read_each_other() -> None:
    told = Told()
    first, second = read_each_other(told)
    finding = only(told, "G1c")
    assert (sorted(finding.operations), finding.allowed) == ([second, first], False)
    assert f"{first} sent 10 to t-0, which {second} polled" in finding.message


def test_g1c_is_allowed_where_it_needs_the_order_of_a_transactions_writes() -> None:
    told = Told()
    told.begin(1, "txn", [sent("t-0", None, 10), ["poll"]])
    told.do(2, "txn", [sent("t-0", 1, 11), sent("t-1", 0, 20)])
    told.end(1, [sent("t-0", 0, 10), ["poll", {"t-1": [[0, 20]]}]])
    told.poll(3, {"t-0": [[0, 10], [1, 11]], "t-1": [[0, 20]]})
    assert only(told, "G1c").allowed


def test_g1c_process_and_g1c_realtime_what_was_read_before_it_was_sent() -> None:
    told = Told()
    read, send = told.poll(1, {"t-0": [[0, 10]]}), told.send(1, "t-0", 0, 10)
    finding = only(told, "G1c-process")
    assert (sorted(finding.operations), finding.allowed) == ([read, send], False)
    told = Told()
    told.poll(2, {"t-0": [[0, 10]]})
    told.send(1, "t-0", 0, 10)
    assert not only(told, "G1c-realtime").allowed


def test_g_single_and_g2_item_are_found_and_allowed() -> None:
    told = Told()
    told.begin(1, "poll", [["poll"]])
    writer = told.do(2, "txn", [sent("t-0", 0, 10), sent("t-1", 1, 20)])
    told.send(3, "t-1", 0, 19)
    reader = told.end(1, [["poll", {"t-0": [[0, 10]], "t-1": [[0, 19]]}]])
    told.poll(4, {"t-0": [[0, 10]], "t-1": [[0, 19], [1, 20]]})
    finding = found(check_queue(told.history()))["G-single"]
    assert (sorted(finding.operations), finding.allowed) == ([writer, reader], True)

    told = Told()
    told.send(9, "t-0", 0, 1)
    told.send(9, "t-1", 0, 1)
    told.begin(1, "txn", [["poll"], sent("t-1", None, 20)])
    told.do(2, "txn", [["poll", {"t-1": [[0, 1]]}], sent("t-0", 1, 10)])
    told.end(1, [["poll", {"t-0": [[0, 1]]}], sent("t-1", 1, 20)])
    told.poll(3, {"t-0": [[0, 1], [1, 10]], "t-1": [[0, 1], [1, 20]]})
    assert only(told, "G2-item").allowed


def test_lag_is_how_long_what_was_read_had_not_been_the_newest() -> None:
    told = Told()
    told.send(1, "t-0", 0, 10)
    known = told.send(1, "t-0", 1, 11)
    began = told.begin(2, "poll", [["poll"]])
    told.end(2, [["poll", {"t-0": [[0, 10]]}]])
    told.poll(2, {"t-0": [[1, 11]]}, final=True)
    statistics = check_queue(told.history()).statistics
    assert statistics["realtime-lag"]["worst"] == {
        "lag": (began - known) * 1_000_000, "time": began * 1_000_000, "process": 2, "key": "t-0",
    }  # fmt: skip
    assert max(statistics["unseen"]["all"]) == 2
    assert statistics["unseen"]["all"][-1] == 0


def test_what_a_subscribed_process_consumed_twice_is_counted() -> None:
    told = Told()
    told.do(2, "subscribe", ["t"])
    told.send(1, "t-0", 0, 10)
    told.send(1, "t-0", 1, 11)
    told.poll(2, {"t-0": [[0, 10]]})
    told.poll(2, {"t-0": [[0, 10], [1, 11]]})
    assert check_queue(told.history()).statistics["consume-counts"] == {"2": 1, "1": 1}


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(20, 300))
def test_what_a_correct_model_did_is_clean(random: Random, steps: int) -> None:
    history = QueueModel(random).run(steps)
    checked = check_queue(history)
    assert not found(checked, allowed=False)
    assert checked.statistics["cycles"]["wr"]["is_whole"]


def test_a_correct_model_does_what_is_allowed() -> None:
    """Otherwise the property above would show little."""
    seen: set[str] = set()
    for seed in range(20):
        seen |= check_queue(QueueModel(Random(seed)).run(400)).counts.keys()
    assert {"G0", "G1c", "G-single", "int-send-skip", "poll-skip", "nonmonotonic-poll"} <= seen


@pytest.mark.parametrize(
    ("bug", "types"),
    [
        ("duplicate", {"duplicate"}),
        ("lost", {"lost-write", "poll-skip", "int-poll-skip"}),
        ("aborted", {"G1a"}),
        ("uncommitted", {"G1a", "precommitted-read", "G1c"}),
    ],
)
def test_a_model_with_a_bug_is_found_out(bug: str, types: set[str]) -> None:
    seen: set[str] = set()
    for seed in range(10):
        seen |= found(check_queue(QueueModel(Random(seed), bug=bug).run(400)), allowed=False).keys()
    assert types <= seen
