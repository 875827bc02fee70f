"""Peers take turns, and the greediest one gives up its own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.network.rules.fair_queue import FairQueue, peer_of


def filled(puts: str, items_max: int = 100) -> tuple[FairQueue[str], list[str]]:
    """Items of peers of one letter, numbered by their order; with what was dropped."""
    queue: FairQueue[str] = FairQueue(items_max=items_max)
    dropped = [queue.put(peer, f"{peer}{number}") for number, peer in enumerate(puts)]
    return queue, [one for one in dropped if one is not None]


def taken(queue: FairQueue[str]) -> list[str]:
    return [queue.take() for _ in range(len(queue))]


def test_peers_take_turns_and_each_keeps_its_order() -> None:
    queue, dropped = filled("aaaabbc")
    assert taken(queue) == ["a0", "b4", "c6", "a1", "b5", "a2", "a3"]
    assert dropped == []
    with pytest.raises(IndexError):
        queue.take()


def test_who_comes_late_waits_for_one_item_of_each_other() -> None:
    queue, _ = filled("a" * 50)
    assert [queue.take(), queue.take()] == ["a0", "a1"]
    queue.put("b", "b")
    assert [queue.take(), queue.take()] == ["a2", "b"]


def test_the_peer_with_most_loses_its_newest() -> None:
    queue, dropped = filled("aaaab", items_max=4)
    assert dropped == ["a3"]
    assert taken(queue) == ["a0", "b4", "a1", "a2"]


def test_the_peer_with_most_is_refused_itself() -> None:
    queue, dropped = filled("aabba", items_max=4)
    assert dropped == ["a4"]
    assert len(queue) == 4


def test_what_waits_no_more_frees_its_place() -> None:
    queue, _ = filled("aab", items_max=3)
    queue.discard("b", "b2")
    queue.discard("b", "b2")
    queue.discard("a", "x")
    assert len(queue) == 2
    assert queue.put("c", "c") is None
    assert taken(queue) == ["a0", "c", "a1"]


@settings(max_examples=100)
@given(st.lists(st.one_of(st.sampled_from("aaaabc"), st.none()), max_size=60), st.integers(1, 6))
def test_nothing_is_lost_and_the_bound_holds(steps: list[str | None], items_max: int) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue(items_max=items_max)
    out, put = [], []
    for number, peer in enumerate(steps):
        if peer is not None:
            put.append((peer, number))
            dropped = queue.put(peer, put[-1])
            out += [] if dropped is None else [dropped]
        elif queue:
            out.append(queue.take())
        assert len(queue) <= items_max
    out += [queue.take() for _ in range(len(queue))]
    assert sorted(out, key=lambda one: one[1]) == put


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("", ":", False),
    ],
)
def test_who_has_one_address_of_ipv6_has_its_network(one: str, other: str, is_same: bool) -> None:
    assert (peer_of(one) == peer_of(other)) is is_same
