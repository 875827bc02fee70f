"""The register of a committed offset: what it takes for possible, and what not."""

import pytest

from penstock.chaos.checkers.committed_offsets import NOTHING, CommittedOffset


@pytest.fixture
def register() -> CommittedOffset:
    return CommittedOffset()


def commit(register: CommittedOffset, offset: int) -> None:
    register.on_committed(register.begin_commit(offset))


def fetch(register: CommittedOffset, offset: int) -> bool:
    return register.on_fetched(register.begin_fetch(), offset) is None


def test_what_was_answered_is_there(register: CommittedOffset) -> None:
    assert fetch(register, NOTHING)
    commit(register, 5)
    assert fetch(register, 5)
    assert not fetch(register, NOTHING)
    commit(register, 3)
    assert fetch(register, 3)
    assert not fetch(register, 5)


def test_what_was_not_answered_may_happen_whenever(register: CommittedOffset) -> None:
    register.on_lost(register.begin_commit(4))
    assert fetch(register, NOTHING)
    commit(register, 5)
    assert fetch(register, 4)
    assert fetch(register, 5)
    assert not fetch(register, NOTHING)


def test_what_is_under_way_may_have_happened(register: CommittedOffset) -> None:
    commit(register, 5)
    open_commit = register.begin_commit(6)
    assert fetch(register, 5)
    assert fetch(register, 6)
    register.on_committed(open_commit)
    assert not fetch(register, 5)


def test_of_two_that_overlapped_either_may_be_last(register: CommittedOffset) -> None:
    first, second = register.begin_commit(5), register.begin_commit(6)
    register.on_committed(first)
    register.on_committed(second)
    assert fetch(register, 5)
    assert fetch(register, 6)
    commit(register, 7)
    assert not fetch(register, 5)


def test_a_fetch_may_tell_of_what_happens_meanwhile(register: CommittedOffset) -> None:
    commit(register, 5)
    open_fetch = register.begin_fetch()
    commit(register, 6)
    assert register.on_fetched(open_fetch, 6) is None
    earlier = register.begin_fetch()
    commit(register, 7)
    assert register.on_fetched(earlier, 6) is None
    lost = register.begin_fetch()
    assert register.on_fetched(lost, 5) == "the committed offset was fetched as 5, where only [7] can be"
