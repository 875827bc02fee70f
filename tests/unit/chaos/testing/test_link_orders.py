"""Which links a test's fault is about, and what is left of others when one ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from penstock.chaos.links.link import Link, all_links
from penstock.chaos.testing.link_orders import LinkOrders, between, matching
from penstock.local.errors import ClusterError

LINKS = all_links(["1", "2", "3"], ["client-0"])


def test_a_partition_is_between_its_groups_in_both_directions() -> None:
    assert set(between([[1], [2, "client-0"]], LINKS)) == {
        Link("1", "2"),
        Link("2", "1"),
        Link("client-0", "1"),
    }


def test_an_end_is_in_one_group_and_groups_are_two() -> None:
    with pytest.raises(ClusterError, match="1 is in two groups"):
        between([[1], [1, 2]], LINKS)
    with pytest.raises(ClusterError, match="between two groups or more"):
        between([[1, 2]], LINKS)


def test_none_is_every_end_and_a_link_that_is_not_there_is_refused() -> None:
    assert set(matching("client-0", None, LINKS)) == {Link("client-0", node) for node in "123"}
    assert matching(1, 2, LINKS) == (Link("1", "2"),)
    with pytest.raises(ClusterError, match="no link from 1 to 1"):
        matching(1, 1, LINKS)


def test_what_else_was_done_to_a_link_goes_on_when_one_fault_ends() -> None:
    done: list[tuple[str, tuple[Link, ...]]] = []

    def noting(what: str) -> Callable[[Iterable[Link]], None]:
        def note(links: Iterable[Link]) -> None:
            done.append((what, tuple(links)))

        return note

    one, two = Link("1", "2"), Link("1", "3")
    orders = LinkOrders(noting("heal"))
    end_cut = orders.begin([one, two], noting("cut"))
    end_slow = orders.begin([two], noting("slow"))
    end_cut()
    end_slow()
    assert done == [
        ("cut", (one, two)),
        ("slow", (two,)),
        ("heal", (one, two)),
        ("slow", (two,)),
        ("heal", (two,)),
    ]
