"""A view has every record up to the end that was asked for, and begins anew where a partition does."""

from __future__ import annotations

import pytest
from scripted_session import ScriptedSession, records

from penstock.chaos.workloads.outcomes import NotDoneError
from penstock.chaos.workloads.partition_view import PartitionViews


class Taken:
    """What a view was given, by key."""

    def __init__(self, session: ScriptedSession) -> None:
        self.values: dict[str, list[bytes | None]] = {}
        self.views = PartitionViews(
            session,
            take=lambda key, record: self.values.setdefault(key, []).append(record.value),
            forget=lambda key: self.values.pop(key, None),  # type: ignore[arg-type]
        )


def test_a_view_reads_up_to_the_end_and_keeps_what_comes_of_others() -> None:
    session = ScriptedSession({}, {"t-1": records((0, "a"))}, {"t-0": records((0, "b"), (1, "c"))})
    session.ends = {"t-0": 2}
    taken = Taken(session)
    taken.views.catch_up("t-0")
    assert taken.values == {"t-0": [b"b", b"c"], "t-1": [b"a"]}


def test_a_view_at_the_end_polls_nothing() -> None:
    session = ScriptedSession({})
    Taken(session).views.catch_up("t-0")
    assert session.calls == []


def test_a_view_of_a_partition_that_begins_again_begins_again() -> None:
    session = ScriptedSession({}, {"t-0": records((5, "a"), (6, "b"))}, {"t-0": records((5, "c"), (6, "d"), (7, "e"))})
    session.ends = {"t-0": 8}
    taken = Taken(session)
    taken.views.catch_up("t-0")
    assert taken.values == {"t-0": [b"c", b"d", b"e"]}


def test_a_poll_that_fails_fails_the_read() -> None:
    session = ScriptedSession({"poll": NotDoneError("no leader")})
    session.ends = {"t-0": 1}
    with pytest.raises(NotDoneError, match="no leader"):
        Taken(session).views.catch_up("t-0")
