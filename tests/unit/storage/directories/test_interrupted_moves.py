"""What a start makes of the folders that a move has left: every row of the table in `interrupted_moves.py`."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.protocol.errors import ConfigError
from penstock.storage.directories.rules.checkpoints import TopicPartition
from penstock.storage.directories.rules.interrupted_moves import (
    Decision,
    Discard,
    FoundFolder,
    Incomplete,
    Promote,
    Resume,
    SetAside,
    settle,
)

A, B, C = UUID(int=1000), UUID(int=1001), UUID(int=1002)
KEY: TopicPartition = ("t", 0)


def log(directory_id: UUID, replaced: UUID | None = None) -> FoundFolder:
    return FoundFolder(
        path=f"/{directory_id.int}/t-0", key=KEY, directory_id=directory_id, replaced_directory_id=replaced
    )


def moved(directory_id: UUID, unique_id: str = "x", *, has_records: bool = True) -> FoundFolder:
    path = f"/{directory_id.int}/t-0.{unique_id}"
    return FoundFolder(path=path, key=KEY, directory_id=directory_id, unique_id=unique_id, has_records=has_records)


def settled(
    logs: list[FoundFolder],
    futures: list[FoundFolder],
    deleted: list[FoundFolder],
    *,
    assigned: UUID | None = None,
    has_offline_directory: bool = False,
) -> list[Decision]:
    return settle(
        logs,
        futures,
        deleted,
        assigned_directory=lambda _: assigned,
        has_offline_directory=has_offline_directory,
    )


def test_a_log_and_its_copy_go_on() -> None:
    assert settled([log(A)], [moved(B)], []) == [Resume(folder=moved(B))]


def test_of_two_logs_the_one_with_the_note_is_right() -> None:
    assert settled([log(A), log(B, replaced=A)], [], [], assigned=A) == [Discard(folder=log(A))]


def test_a_note_about_a_directory_that_is_not_here_says_nothing() -> None:
    assert settled([log(A), log(B, replaced=C)], [], [], assigned=A) == [SetAside(folder=log(B, replaced=C))]


def test_a_copy_whose_log_was_deleted_for_it_gets_its_name() -> None:
    assert settled([], [moved(B)], [moved(A)]) == [Promote(folder=moved(B))]
    assert settled([], [moved(B)], [moved(A)], has_offline_directory=True) == [Promote(folder=moved(B))]


def test_a_deleted_log_of_another_move_says_nothing() -> None:
    assert settled([], [moved(B)], [moved(A, "y")]) == [Incomplete(folder=moved(B))]


def test_nothing_is_left_to_do_after_a_move() -> None:
    assert settled([log(B)], [], [moved(A)]) == []


def test_a_copy_alone_is_no_replica() -> None:
    assert settled([], [moved(B)], []) == [Incomplete(folder=moved(B))]
    assert settled([], [moved(B)], [], assigned=B) == [Incomplete(folder=moved(B))]
    assert settled([], [moved(B, has_records=False)], []) == [Discard(folder=moved(B, has_records=False))]


def test_a_copy_is_left_alone_while_its_log_may_be_in_a_directory_that_is_offline() -> None:
    assert settled([], [moved(B)], [], has_offline_directory=True) == []


def test_of_several_copies_none_is_known_to_be_wanted() -> None:
    copies = [moved(B), moved(C, "y")]
    assert settled([log(A)], copies, []) == [Discard(folder=one) for one in copies]
    assert settled([log(A)], [moved(A)], []) == [Discard(folder=moved(A))]


def test_without_a_note_the_metadata_decide_between_two_logs() -> None:
    assert settled([log(A), log(B)], [], [], assigned=B) == [SetAside(folder=log(A))]
    assert settled([log(A), log(B), log(C)], [], [], assigned=B) == [SetAside(folder=log(A)), SetAside(folder=log(C))]


@pytest.mark.parametrize("assigned", [None, C])
def test_two_logs_of_which_nothing_tells_the_right_one_stop_the_start(assigned: UUID | None) -> None:
    with pytest.raises(ConfigError, match="t-0 has two logs"):
        settled([log(A), log(B)], [], [], assigned=assigned)
