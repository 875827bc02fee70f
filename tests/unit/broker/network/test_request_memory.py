"""The budget for unfinished requests holds, is fair, and cannot deadlock."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.network.rules.request_memory import RequestMemory


class Holder:
    def __init__(self) -> None:
        self.held = 0
        self.wanted = 0

    def on_memory(self) -> None:
        self.held += self.wanted
        self.wanted = 0


def take(memory: RequestMemory, holder: Holder, size_bytes: int) -> bool:
    if memory.try_take(holder, size_bytes):
        holder.held += size_bytes
        return True
    holder.wanted = size_bytes
    return False


def give_back(memory: RequestMemory, holder: Holder) -> None:
    held, holder.held, holder.wanted = holder.held, 0, 0
    memory.give_back(holder, held)


def test_first_holder_past_the_limit_is_granted_and_the_next_waits() -> None:
    memory = RequestMemory(100)
    first, second, third = Holder(), Holder(), Holder()
    assert take(memory, first, 80)
    assert take(memory, second, 80)
    assert take(memory, second, 1000)
    assert not take(memory, third, 80)
    assert not take(memory, first, 1)
    give_back(memory, second)
    assert third.held == 80
    assert memory.used_bytes == 160


def test_waiting_holder_that_leaves_is_forgotten() -> None:
    memory = RequestMemory(10)
    first, second, third = Holder(), Holder(), Holder()
    assert take(memory, first, 20)
    assert not take(memory, second, 5)
    assert not take(memory, third, 5)
    give_back(memory, second)
    give_back(memory, first)
    assert second.held == 0
    assert third.held == 5


def test_bytes_that_have_arrived_are_always_charged() -> None:
    memory = RequestMemory(10)
    memory.take(25)
    assert memory.is_spent
    assert memory.used_bytes == 25


@given(
    limit=st.integers(1, 100),
    frames=st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=4), min_size=1, max_size=10),
    order=st.randoms(use_true_random=False),
)
def test_every_request_finishes_and_all_memory_comes_back(limit: int, frames: list[list[int]], order: object) -> None:
    memory = RequestMemory(limit)
    holders = [(Holder(), list(steps)) for steps in frames]
    largest = max(sum(steps) for steps in frames)
    for _ in range(1000):
        running = [(holder, steps) for holder, steps in holders if not holder.wanted and (steps or holder.held)]
        if not running:
            break
        holder, steps = order.choice(running)  # type: ignore[attr-defined]
        if steps:
            take(memory, holder, steps.pop())
        else:
            give_back(memory, holder)
        assert memory.used_bytes == sum(holder.held for holder, _ in holders)
        assert memory.used_bytes <= limit + largest
    assert not any(steps or holder.held or holder.wanted for holder, steps in holders)
    assert memory.used_bytes == 0
