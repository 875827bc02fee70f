"""Operations wait for their key or their deadline, complete once, and leave nothing behind."""

import asyncio
import logging
from collections.abc import Callable, Iterator

import pytest
from wire import ManualLoop

from penstock.broker.timing.purgatory import TICK_MS, TURN_OPERATIONS, DelayedOperation, Purgatory


class Waiting(DelayedOperation):
    def __init__(self, condition: Callable[[], bool]) -> None:
        super().__init__()
        self.condition = condition
        self.calls: list[str] = []

    def try_complete(self) -> bool:
        if self.condition():
            self.calls.append("completed")
            return True
        return False

    def on_expiration(self) -> None:
        self.calls.append("expired")

    def on_failure(self, error: Exception) -> None:
        self.calls.append(f"failed: {error}")


@pytest.fixture
def loop() -> Iterator[ManualLoop]:
    loop = ManualLoop()
    yield loop
    loop.close()


@pytest.fixture
def purgatory(loop: ManualLoop) -> Purgatory:
    return Purgatory(loop, "test")


def parked(purgatory: Purgatory, *keys: str, timeout_ms: int = 500) -> tuple[Waiting, list[bool]]:
    """An operation that completes once its flag, returned beside it, is set."""
    flag = [False]
    operation = Waiting(lambda: flag[0])
    assert not purgatory.watch(operation, keys, timeout_ms)
    return operation, flag


def test_operation_whose_condition_holds_completes_at_once(purgatory: Purgatory) -> None:
    operation = Waiting(lambda: True)
    assert purgatory.watch(operation, ["a"], 500)
    assert operation.calls == ["completed"]
    assert operation.is_completed
    assert purgatory.statistics().parked_count == 0
    assert purgatory.check_and_complete("a") == 0


def test_operation_completes_when_one_of_its_keys_is_checked(loop: ManualLoop, purgatory: Purgatory) -> None:
    operation, flag = parked(purgatory, "a", "b")
    assert purgatory.check_and_complete("a") == 0
    flag[0] = True
    assert purgatory.check_and_complete("c") == 0
    assert purgatory.check_and_complete("b") == 1
    assert purgatory.check_and_complete("a") == 0
    loop.turn(1000)
    assert operation.calls == ["completed"]
    assert purgatory.statistics().parked_count == 0
    assert purgatory.statistics().expired_count == 0


def test_operation_expires_at_its_deadline_and_never_before(loop: ManualLoop, purgatory: Purgatory) -> None:
    operation, flag = parked(purgatory, "a", timeout_ms=500)
    loop.turn(499)
    assert operation.calls == []
    loop.turn(1 + TICK_MS)
    assert operation.calls == ["expired"]
    flag[0] = True
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.statistics().expired_count == 1


def test_earlier_deadline_added_later_is_met(loop: ManualLoop, purgatory: Purgatory) -> None:
    late, _ = parked(purgatory, "a", timeout_ms=10_000)
    early, _ = parked(purgatory, "a", timeout_ms=10)
    loop.turn(20)
    assert early.calls == ["expired"]
    assert late.calls == []
    loop.turn(10_000)
    assert late.calls == ["expired"]


def test_cancelled_operation_hears_nothing(loop: ManualLoop, purgatory: Purgatory) -> None:
    operation, flag = parked(purgatory, "a")
    purgatory.cancel(operation)
    purgatory.cancel(operation)
    flag[0] = True
    purgatory.check_and_complete("a")
    loop.turn(1000)
    assert operation.calls == []
    assert purgatory.statistics().parked_count == 0


def test_operations_of_a_key_complete_oldest_first(purgatory: Purgatory) -> None:
    order: list[int] = []
    ready = [False]

    def finish(number: int) -> bool:
        if ready[0]:
            order.append(number)
        return ready[0]

    for number in range(5):
        purgatory.watch(Waiting(lambda number=number: finish(number)), ["a"], 500)  # type: ignore[misc]
    ready[0] = True
    assert purgatory.check_and_complete("a") == 5
    assert order == [0, 1, 2, 3, 4]


def test_completion_may_park_and_complete_under_the_same_key(purgatory: Purgatory) -> None:
    second, second_flag = parked(purgatory, "a")
    inner: list[Waiting] = []

    def complete_the_other() -> bool:
        if not second_flag[0]:
            return False
        inner.append(parked(purgatory, "a")[0])
        purgatory.cancel(first)
        purgatory.check_and_complete("a")
        return True

    first = Waiting(complete_the_other)
    purgatory.cancel(second)
    purgatory.watch(first, ["a"], 500)
    third = Waiting(lambda: second_flag[0])
    purgatory.watch(third, ["a"], 500)
    second_flag[0] = True
    purgatory.check_and_complete("a")
    assert third.calls == ["completed"]
    assert inner[0].calls == []
    assert purgatory.statistics().parked_count == 1


def test_failing_operation_is_told_and_does_not_disturb_others(
    purgatory: Purgatory, caplog: pytest.LogCaptureFixture
) -> None:
    armed = [False]

    def fail() -> bool:
        if armed[0]:
            raise RuntimeError("broken")
        return False

    failing = Waiting(fail)
    purgatory.watch(failing, ["a"], 500)
    operation, flag = parked(purgatory, "a")
    armed[0] = flag[0] = True
    with caplog.at_level(logging.ERROR):
        assert purgatory.check_and_complete("a") == 2
    assert failing.calls == ["failed: broken"]
    assert operation.calls == ["completed"]
    assert "broken" in caplog.text


def crowd(purgatory: Purgatory, count: int, key: str, flag: list[bool]) -> list[Waiting]:
    operations = [Waiting(lambda: flag[0]) for _ in range(count)]
    for operation in operations:
        assert not purgatory.watch(operation, [key], 500)
    return operations


def test_a_few_complete_in_the_turn_of_the_caller(purgatory: Purgatory) -> None:
    flag = [False]
    few = crowd(purgatory, TURN_OPERATIONS, "a", flag)
    flag[0] = True
    purgatory.complete_in_turns("a")
    assert all(one.is_completed for one in few)
    purgatory.complete_in_turns("a")


def test_many_complete_behind_the_caller_so_many_a_turn_and_keys_take_turns(
    loop: ManualLoop, purgatory: Purgatory
) -> None:
    flag = [False]
    many = crowd(purgatory, 2 * TURN_OPERATIONS + 1, "a", flag)
    others = crowd(purgatory, TURN_OPERATIONS + 1, "b", flag)
    flag[0] = True
    purgatory.complete_in_turns("a")
    purgatory.complete_in_turns("b")
    counts = []
    for _ in range(6):
        counts.append([sum(one.is_completed for one in some) for some in (many, others)])
        loop.turn(0)
    turn = TURN_OPERATIONS
    assert counts == [
        [0, 0],
        [turn, 0],
        [turn, turn],
        [2 * turn, turn],
        [2 * turn, turn + 1],
        [2 * turn + 1, turn + 1],
    ]
    assert purgatory.statistics().parked_count == 0
    few = crowd(purgatory, 1, "a", flag := [False])
    flag[0] = True
    purgatory.complete_in_turns("a")
    assert few[0].is_completed, "nothing is due any more"


def test_what_was_looked_at_before_a_change_is_looked_at_after_it(loop: ManualLoop, purgatory: Purgatory) -> None:
    flag = [False]
    many = crowd(purgatory, 2 * TURN_OPERATIONS, "a", flag)
    purgatory.complete_in_turns("a")
    loop.turn(0)
    late = crowd(purgatory, 1, "a", flag)
    flag[0] = True
    purgatory.complete_in_turns("a")
    for _ in range(3):
        assert not late[0].is_completed
        loop.turn(0)
    assert all(one.calls == ["completed"] for one in [*many, *late])


def test_what_has_expired_or_was_cancelled_before_its_turn_hears_nothing_more(
    loop: ManualLoop, purgatory: Purgatory
) -> None:
    flag = [False]
    many = crowd(purgatory, 2 * TURN_OPERATIONS, "a", flag)
    flag[0] = True
    purgatory.complete_in_turns("a")
    purgatory.cancel(many[0])
    purgatory.expire_all()
    loop.turn(0)
    loop.turn(0)
    assert many[0].calls == []
    assert all(one.calls == ["expired"] for one in many[1:])


def test_stopping_expires_everything_now(loop: ManualLoop, purgatory: Purgatory) -> None:
    operations = [parked(purgatory, "a", timeout_ms=30_000)[0] for _ in range(3)]
    purgatory.expire_all()
    assert [operation.calls for operation in operations] == [["expired"]] * 3
    loop.turn(60_000)
    assert [operation.calls for operation in operations] == [["expired"]] * 3


def test_thousand_operations_need_one_timer(loop: ManualLoop, purgatory: Purgatory) -> None:
    timers: list[float] = []
    call_at = loop.call_at

    def counting_call_at(when: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        timers.append(when)
        return call_at(when, callback)

    loop.call_at = counting_call_at  # type: ignore[assignment,method-assign]
    for _ in range(1000):
        parked(purgatory, "a", timeout_ms=500)
    assert len(timers) == 1
    loop.turn(600)
    assert purgatory.statistics().parked_count == 0
    assert purgatory.statistics().expired_count == 1000
