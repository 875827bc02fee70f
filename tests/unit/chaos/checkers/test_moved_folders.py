"""Where the log of a replica is, of whatever a move between log directories has left (decision 22)."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.chaos.checkers.moved_folders import PlainDirectory, log_folders, unfinished_moves

A, B, ELSEWHERE = UUID(int=100), UUID(int=200), UUID(int=300)


def directories(a: tuple[str, ...], b: tuple[str, ...], replaced_by_b: UUID | None = None) -> list[PlainDirectory]:
    notes = {} if replaced_by_b is None else {"t-0": replaced_by_b}
    return [
        PlainDirectory(path="/a", directory_id=A, folders=a),
        PlainDirectory(path="/b", directory_id=B, folders=b, replaced=notes),
    ]


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (("t-0",), ("t-0.1f-future",), ["/a/t-0"]),
        (("t-0.1f-delete",), ("t-0.1f-future",), ["/b/t-0.1f-future"]),
        (("t-0.1f-delete",), ("t-0",), ["/b/t-0"]),
        ((), ("t-0.1f-future",), []),
        (("t-0.2f-delete",), ("t-0.1f-future",), []),
        (("t-00", "t-0.1f-stray"), (), []),
        (("t-0",), ("t-0",), ["/a/t-0"]),
    ],
)
def test_names_tell_which_folder_is_the_log(a: tuple[str, ...], b: tuple[str, ...], found: list[str]) -> None:
    assert log_folders("t-0", directories(a, b), assigned=A) == found


def test_of_two_logs_the_one_whose_note_names_the_other_s_directory_counts() -> None:
    both = directories(("t-0",), ("t-0",), replaced_by_b=A)
    assert log_folders("t-0", both, assigned=A) == ["/b/t-0"]
    foreign = directories(("t-0",), ("t-0",), replaced_by_b=ELSEWHERE)
    assert log_folders("t-0", foreign, assigned=A) == ["/a/t-0"]
    assert log_folders("t-0", foreign, assigned=ELSEWHERE) == ["/a/t-0", "/b/t-0"]


@pytest.mark.parametrize(
    ("a", "b", "assigned", "count"),
    [
        (("t-0", "t-0.1f-delete"), (), A, 0),
        ((), (), None, 0),
        (("t-0",), (), B, 1),
        (("t-0",), ("t-0",), A, 1),
        (("t-0",), ("t-0.1f-future",), A, 1),
        (("t-0",), (), None, 1),
        ((), ("t-1.1f-future",), None, 0),
    ],
)
def test_moves_are_over_when_each_replica_is_where_the_metadata_have_it(
    a: tuple[str, ...], b: tuple[str, ...], assigned: UUID | None, count: int
) -> None:
    assert len(list(unfinished_moves("t-0", directories(a, b), assigned))) == count
