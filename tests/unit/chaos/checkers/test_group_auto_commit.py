from __future__ import annotations

from random import Random
from typing import Any

from histories import numbered, planted
from hypothesis import given
from hypothesis import strategies as st

from penstock.chaos.checkers.group_auto_commit import check_group
from penstock.chaos.histories.operation import History, Operation

SENT = [
    (0, "send", "invoke", [["send", "t-0", value] for value in (10, 11, 12)]),
    (0, "send", "ok", [["send", "t-0", [offset, value]] for offset, value in enumerate((10, 11, 12))]),
]


def subscribed(process: int, f: str = "subscribe") -> list[Any]:
    return [(process, f, "invoke", ["t"]), (process, f, "ok", ["t"])]


def polled(process: int, *offsets: int, kind: str = "ok") -> list[Any]:
    told = [["poll", {"t-0": [[offset, 10 + offset] for offset in offsets]}]] if kind == "ok" else None
    return [(process, "poll", "invoke", [["poll"]], "final"), (process, "poll", kind, told, "final")]


def committed(process: int, offset: int, kind: str = "ok") -> list[Any]:
    return [(process, "commit", "invoke", {"t-0": offset}), (process, "commit", kind, {"t-0": offset})]


def found(history: History) -> list[tuple[str, bool, tuple[int, ...]]]:
    return [(one.type, one.allowed, one.operations) for one in check_group(history).findings]


def test_what_comes_again_after_a_crash_is_allowed() -> None:
    history = planted(*SENT, *subscribed(1), *polled(1, 0, 1), *subscribed(2), *polled(2, 1, 2))
    assert found(history) == [("duplicate", True, (5, 9))]


def test_what_was_committed_past_and_given_to_no_member_is_skipped() -> None:
    history = planted(*SENT, *subscribed(1), *polled(1, 0), *committed(1, 2), *subscribed(2), *polled(2, 2))
    assert found(history) == [("skipped", False, (1, 7))]
    later = planted(*SENT, *subscribed(1), *polled(1, 0), *subscribed(2), *polled(2, 2))
    assert found(later) == [("skipped", False, (1, 9))]


def test_what_others_read_was_given_to_no_member() -> None:
    history = planted(*SENT, *subscribed(1), *polled(1, 0), *subscribed(2, "assign"), *polled(2, 0, 1, 2))
    assert found(history) == [("unseen", False, (1,)), ("unseen", False, (1,))]


def test_a_poll_without_an_outcome_may_have_been_given_what_is_skipped() -> None:
    history = planted(*SENT, *subscribed(1), *polled(1, 1, kind="info"), *subscribed(2), *polled(2, 0, 2))
    assert found(history) == [("skipped", True, (1, 9))]


def test_a_poll_without_an_outcome_was_not_given_what_came_after_it_or_had_been_skipped_before() -> None:
    unknown = [*subscribed(1), *polled(1, 1, kind="info")]
    after = planted(*unknown, *SENT, *subscribed(2), *polled(2, 0, 2))
    assert found(after) == [("skipped", False, (5, 9))]
    before = planted(*SENT, *subscribed(2), *polled(2, 0, 2), *unknown)
    assert found(before) == [("skipped", False, (1, 5))]
    without_an_end = planted(*subscribed(1), polled(1, 1)[0], *SENT, *subscribed(2), *polled(2, 0, 2))
    assert found(without_an_end) == [("skipped", True, (4, 8))]


def test_a_commit_that_failed_or_is_unknown_skips_nothing() -> None:
    for kind in ("fail", "info"):
        whole = planted(*SENT, *subscribed(1), *committed(1, 3, kind), *subscribed(2), *polled(2, 0, 1, 2))
        assert not found(whole)


@given(seed=st.integers(0, 1 << 32))
def test_a_group_that_works_repeats_and_skips_nothing(seed: int) -> None:
    """Members commit what they were given, crash, and are followed by others that go on there."""
    rng = Random(seed)
    events: list[tuple[int, Operation]] = []
    moment = end = committed_offset = position = 0
    member = 1

    def did(process: int, f: str, asked: Any, told: Any, *, final: bool = False) -> None:
        nonlocal moment
        events.append((moment, Operation(0, "invoke", process, 0, f, asked, None, final)))
        events.append((moment + 1, Operation(0, "ok", process, 0, f, told, None, final)))
        moment += 2

    did(member, "subscribe", ["t"], ["t"])
    for _ in range(60):
        match rng.choice(["send", "send", "poll", "poll", "commit", "crash"]):
            case "send":
                did(0, "send", [["send", "t-0", end]], [["send", "t-0", [end, end]]])
                end += 1
            case "poll":
                until = rng.randint(position, end)
                did(member, "poll", [["poll"]], [["poll", {"t-0": [[n, n] for n in range(position, until)]}]])
                position = until
            case "commit":
                did(member, "commit", {"t-0": position}, {"t-0": position})
                committed_offset = position
            case "crash":
                if rng.random() < 0.5:
                    # Its last act, that no history tells.
                    committed_offset = position
                member += 1
                did(member, "subscribe", ["t"], ["t"])
                position = committed_offset
    did(member, "poll", [["poll"]], [["poll", {"t-0": [[n, n] for n in range(position, end)]}]], final=True)
    assert all(allowed for _, allowed, _ in found(numbered(events)))
