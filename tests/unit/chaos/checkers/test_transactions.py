"""The checker of transactions: what it takes for possible, and that it finds each anomaly."""

from collections.abc import Sequence

import pytest

from penstock.chaos.checkers.records import Stored
from penstock.chaos.checkers.transactions import (
    Anomaly,
    Place,
    PlaceEnd,
    Poll,
    Send,
    Transaction,
    judge_transactions,
    sentences,
)
from penstock.protocol.structs import replace

A = Place("a", 0)
B = Place("b", 0)
# Offset 2 of each place is the marker of `one`, and 4 that of what follows.
A0, A1, A3 = Stored(0, b"a0"), Stored(1, b"a1"), Stored(3, b"a3")
B0, B3 = Stored(0, b"b0"), Stored(3, b"b3")


def place_end(committed: Sequence[Stored], stored: Sequence[Stored], *, group_offset: int | None = None) -> PlaceEnd:
    return PlaceEnd(
        committed=tuple(committed), stored=tuple(stored), last_stable_offset=5, high_watermark=5,
        group_offset=group_offset,
    )  # fmt: skip


def read(place: Place, *records: Stored, at_s: float = 20.0, reader: str = "reader", committed: bool = True) -> Poll:
    return Poll(reader=reader, is_read_committed=committed, place=place, records=records, read_s=at_s)


class History:
    """`one` is committed, of `two` it is unknown, and it was."""

    def __init__(self) -> None:
        self.one = Transaction(
            "one", [Send(A, b"a0", 0), Send(A, b"a1", 1), Send(B, b"b0", 0)],
            commit_asked_s=1.0, is_commit_answered=True,
        )  # fmt: skip
        self.two = Transaction("two", [Send(A, b"a3", 3), Send(B, b"b3", 3)], commit_asked_s=2.0)
        self.polls = [read(A, A0, A1), read(A, A3), read(B, B0, B3)]
        self.ends = {A: place_end((A0, A1, A3), (A0, A1, A3)), B: place_end((B0, B3), (B0, B3))}

    def found(self) -> set[Anomaly]:
        return {one.anomaly for one in judge_transactions((self.one, self.two), self.polls, self.ends)}


@pytest.fixture
def history() -> History:
    return History()


def test_whole_transactions_are_no_anomaly(history: History) -> None:
    assert history.found() == set()


def test_transaction_with_an_unknown_outcome_may_be_aborted(history: History) -> None:
    history.polls = [read(A, A0, A1), read(B, B0), read(A, A0, A1, A3, reader="other", committed=False)]
    history.ends[A] = replace(history.ends[A], committed=(A0, A1))
    history.ends[B] = replace(history.ends[B], committed=(B0,))
    assert history.found() == set()


def test_aborted_read_of_what_no_producer_asked_to_commit(history: History) -> None:
    history.two.commit_asked_s = None
    assert history.found() == {Anomaly.ABORTED_READ}


def test_aborted_read_of_what_is_not_there_in_the_end(history: History) -> None:
    history.ends[A] = replace(history.ends[A], committed=(A0, A1))
    history.ends[B] = replace(history.ends[B], committed=(B0,))
    assert history.found() == {Anomaly.ABORTED_READ}


def test_read_before_the_commit_was_asked_for(history: History) -> None:
    history.polls = [read(A, A0, A1, A3, at_s=1.5)]
    assert history.found() == {Anomaly.PRECOMMITTED_READ}


def test_lost_record_of_a_committed_transaction(history: History) -> None:
    history.polls = []
    history.ends[A] = place_end((A0, A3), (A0, A3))
    assert history.found() == {Anomaly.LOST}


def test_lost_record_that_a_reader_of_all_records_had(history: History) -> None:
    history.polls = [read(A, A0, A1, Stored(2, b"gone"), committed=False)]
    assert history.found() == {Anomaly.LOST}


def test_torn_transaction(history: History) -> None:
    history.polls = []
    history.ends[B] = replace(history.ends[B], committed=(B0,))
    assert history.found() == {Anomaly.TORN}


def test_record_that_is_stored_twice(history: History) -> None:
    history.ends[B] = replace(history.ends[B], stored=(B0, B3, Stored(4, b"b0")))
    assert history.found() == {Anomaly.DUPLICATED}


def test_record_that_is_elsewhere_than_acknowledged(history: History) -> None:
    history.two.sends[1].offset = 2
    assert history.found() == {Anomaly.MOVED}


def test_record_that_is_elsewhere_than_read(history: History) -> None:
    history.polls.append(read(A, Stored(1, b"a0"), reader="other"))
    assert history.found() == {Anomaly.MOVED}


def test_record_that_was_never_sent(history: History) -> None:
    history.ends[B] = place_end((B0, B3, Stored(4, b"?")), (B0, B3, Stored(4, b"?")))
    assert history.found() == {Anomaly.FOREIGN}


def test_sends_of_one_transaction_that_changed_their_order(history: History) -> None:
    history.one.sends[:2] = [Send(A, b"a1", 1), Send(A, b"a0", 0)]
    assert history.found() == {Anomaly.SEND_ORDER}


@pytest.mark.parametrize("polls", [(read(A, A0, A1, A0),), (read(A, A0, A1), read(A, A1, A3))])
def test_reader_that_goes_back(history: History, polls: Sequence[Poll]) -> None:
    history.polls = list(polls)
    assert history.found() == {Anomaly.POLL_ORDER}


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("is_one_poll", [True, False])
def test_reader_that_leaves_a_record_out(history: History, *, is_committed: bool, is_one_poll: bool) -> None:
    history.polls = (
        [read(A, A0, A3, committed=is_committed)]
        if is_one_poll
        else [read(A, A0, committed=is_committed), read(A, A3, committed=is_committed)]
    )
    assert history.found() == {Anomaly.POLL_SKIP}


def test_last_stable_offset_that_stays_behind(history: History) -> None:
    history.ends[A] = replace(history.ends[A], last_stable_offset=4)
    assert history.found() == {Anomaly.STUCK}


def test_sentences_tell_each_anomaly_once(history: History) -> None:
    history.two.commit_asked_s = None
    history.ends[A] = replace(history.ends[A], last_stable_offset=4)
    stuck, aborted = sentences(judge_transactions((history.one, history.two), (), history.ends))
    assert stuck.startswith("STUCK: ")
    assert stuck.endswith(": a-0: 4 below 5")
    assert aborted.startswith("ABORTED_READ: ")
    assert aborted.endswith(" in the end (and 1 more)")


class TestConsumed:
    """`two` and `three` consume what is in A and write to B."""

    @pytest.fixture
    def transactions(self) -> list[Transaction]:
        return [
            Transaction("one", [Send(A, b"a0"), Send(A, b"a1"), Send(A, b"a3")], {}, 1.0, is_commit_answered=True),
            Transaction("two", [Send(B, b"b0")], {A: (0, 2)}, 2.0, is_commit_answered=True),
            Transaction("three", [Send(B, b"b3")], {A: (2, 4)}, 3.0),
        ]

    def found(
        self, transactions: Sequence[Transaction], *, group_offset: int, output: Sequence[Stored] = (B0, B3)
    ) -> set[Anomaly]:
        ends = {A: place_end((A0, A1, A3), (A0, A1, A3), group_offset=group_offset), B: place_end(output, (B0, B3))}
        return {one.anomaly for one in judge_transactions(transactions, (), ends)}

    def test_what_is_consumed_once_is_no_anomaly(self, transactions: list[Transaction]) -> None:
        assert self.found(transactions, group_offset=4) == set()
        assert self.found(transactions, group_offset=2, output=(B0,)) == set()

    def test_what_is_consumed_twice(self, transactions: list[Transaction]) -> None:
        transactions[2].consumed[A] = (1, 4)
        assert self.found(transactions, group_offset=4) == {Anomaly.INPUT_TWICE}

    def test_what_is_passed_over(self, transactions: list[Transaction]) -> None:
        transactions[1].consumed[A] = (0, 1)
        assert self.found(transactions, group_offset=4) == {Anomaly.INPUT_SKIPPED}

    @pytest.mark.parametrize(("group_offset", "output"), [(2, (B0, B3)), (4, (B0,))])
    def test_offsets_that_say_otherwise_than_records(
        self, transactions: list[Transaction], group_offset: int, output: Sequence[Stored]
    ) -> None:
        assert self.found(transactions, group_offset=group_offset, output=output) == {Anomaly.OFFSETS_TORN}
