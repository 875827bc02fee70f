"""The faults of links that hold in a test's cluster: which links, by the ends that a test names, and what is healed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ...local.errors import ClusterError
from ..links.link import Link

End: TypeAlias = int | str
"""A node's id, or a client slot as `client-0`."""


def between(groups: Sequence[Iterable[End]], links: Iterable[Link]) -> tuple[Link, ...]:
    """The links from one group to another, in both directions; an end of no group keeps all of its own.

    Raises ClusterError for an end in two groups, and for fewer than two groups.
    """
    if len(groups) < 2:
        raise ClusterError("a partition is between two groups or more: expected partition([1], [2, 3])")
    group_of: dict[str, int] = {}
    for number, group in enumerate(groups):
        for end in group:
            if group_of.setdefault(str(end), number) != number:
                raise ClusterError(f"{end} is in two groups of one partition")
    return tuple(
        link
        for link in links
        if link.source in group_of and link.target in group_of and group_of[link.source] != group_of[link.target]
    )


def matching(source: End | None, target: End | None, links: Iterable[Link]) -> tuple[Link, ...]:
    """The links from `source` to `target`; None is every end. Raises ClusterError when the cluster has no such link."""
    found = tuple(
        link
        for link in links
        if (source is None or link.source == str(source)) and (target is None or link.target == str(target))
    )
    if not found:
        raise ClusterError(f"this cluster has no link from {source} to {target}")
    return found


class LinkOrders:
    """What was done to links and still holds. `heal` makes links what they were, whatever was done to them."""

    def __init__(self, heal: Callable[[Iterable[Link]], None]) -> None:
        self._heal = heal
        self._orders: list[tuple[frozenset[Link], Callable[[Iterable[Link]], None]]] = []

    def begin(self, links: Iterable[Link], apply: Callable[[Iterable[Link]], None]) -> Callable[[], None]:
        """Returns what ends it; what else was done to the same links goes on then."""
        order = (frozenset(links), apply)
        apply(sorted(order[0]))
        self._orders.append(order)

        def end() -> None:
            self._orders = [one for one in self._orders if one is not order]
            self._heal(sorted(order[0]))
            for others, again in self._orders:
                if shared := sorted(others & order[0]):
                    again(shared)

        return end
