"""Which nodes and links a fault hits: its selector, applied to a cluster as it is at that moment. Pure.

Cuts are those of Jepsen's `jepsen.nemesis` (complete-grudge, bridge, majorities-ring), said as links: the connections
that one end opens to another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

from msgspec import Struct

from ..links.link import Link, all_links


class View(Struct, frozen=True, kw_only=True):
    """A cluster at one moment: who leads is by partition (`t-0`), of those under load that have a leader."""

    nodes: tuple[int, ...]
    controller: int | None = None
    leaders: Mapping[str, int] = {}
    slots: tuple[str, ...] = ()


def needs_leaders(selector: str) -> bool:
    """Whether it chooses by who leads, which has to be asked for."""
    return selector in ("leaders", "controllers", "client-from-leader")


def choose_nodes(selector: str, view: View, random: Random) -> tuple[int, ...]:
    """In ascending order. Empty when there is no such node now: no leader, no active controller."""
    if selector[0].isdigit():
        wanted = {int(one) for one in selector.split(",")}
        return tuple(sorted(wanted & set(view.nodes)))
    nodes = list(view.nodes)
    count = len(nodes)
    chosen: Sequence[int]
    match selector:
        case "one":
            chosen = random.sample(nodes, min(1, count))
        case "minority":
            chosen = random.sample(nodes, random.randint(1, max(1, (count - 1) // 2)))
        case "majority":
            chosen = random.sample(nodes, random.randint(count // 2 + 1, max(count // 2 + 1, count - 1)))
        case "all":
            chosen = nodes
        case "leaders":
            leader = _leader(view, random)
            chosen = () if leader is None else (leader,)
        case "controllers":
            chosen = () if view.controller is None else (view.controller,)
        case _:
            raise AssertionError(selector)
    return tuple(sorted(chosen))


def choose_links(selector: str, view: View, random: Random) -> tuple[Link, ...]:
    """Sorted. Empty when there are no such links now."""
    if ">" in selector:
        wanted = {Link(*one.split(">")) for one in selector.split(",")}
        return tuple(sorted(wanted.intersection(all_links(map(str, view.nodes), view.slots))))
    return tuple(sorted(set(_CHOICES[selector](view, random))))


def _one(view: View, random: Random) -> list[Link]:
    """With its clients: as if its cable were pulled."""
    node = str(random.choice(view.nodes))
    return [*_between([node], [*_others(view, node), *view.slots])]


def _majority(view: View, random: Random) -> list[Link]:
    nodes = _shuffled(view, random)
    half = len(nodes) // 2
    return _between(nodes[:half], nodes[half:])


def _minority_third(view: View, random: Random) -> list[Link]:
    nodes = _shuffled(view, random)
    count = max(1, (len(nodes) - 1) // 3)
    return _between(nodes[:count], nodes[count:])


def _majorities_ring(view: View, random: Random) -> list[Link]:
    """Nodes in a ring: each one takes connections from the majority around it, and from no other node."""
    ring = _shuffled(view, random)
    majority = len(ring) // 2 + 1
    links = []
    for start in range(len(ring)):
        seen = [ring[(start + place) % len(ring)] for place in range(majority)]
        target = seen[majority // 2]
        links += [Link(source, target) for source in ring if source not in seen]
    return links


def _bridge(view: View, random: Random) -> list[Link]:
    _, *rest = _shuffled(view, random)
    half = len(rest) // 2
    return _between(rest[:half], rest[half:])


def _one_way(view: View, random: Random) -> list[Link]:
    node = str(random.choice(view.nodes))
    others = _others(view, node)
    is_to_it = random.random() < 0.5
    return [Link(other, node) if is_to_it else Link(node, other) for other in others]


def _leaders(view: View, random: Random) -> list[Link]:
    leader = _leader(view, random)
    return [] if leader is None else _between([str(leader)], _others(view, str(leader)))


def _controllers(view: View, random: Random) -> list[Link]:  # noqa: ARG001 - as every choice
    controller = view.controller
    return [] if controller is None else _between([str(controller)], _others(view, str(controller)))


def _client_from_leader(view: View, random: Random) -> list[Link]:
    leader = _leader(view, random)
    return [] if leader is None or not view.slots else [Link(random.choice(view.slots), str(leader))]


def _link(view: View, random: Random) -> list[Link]:
    if len(view.nodes) < 2:
        return []
    one, other = random.sample(list(map(str, view.nodes)), 2)
    return [Link(one, other)] if random.random() < 0.5 else _between([one], [other])


_CHOICES: Final[Mapping[str, Callable[[View, Random], list[Link]]]] = {
    "one": _one,
    "majority": _majority,
    "minority-third": _minority_third,
    "majorities-ring": _majorities_ring,
    "bridge": _bridge,
    "one-way": _one_way,
    "leaders": _leaders,
    "controllers": _controllers,
    "client-from-leader": _client_from_leader,
    "link": _link,
}


def _leader(view: View, random: Random) -> int | None:
    """Of a partition that is drawn, not of all nodes that lead: one that leads many is hit more often."""
    partitions = sorted(view.leaders)
    return view.leaders[random.choice(partitions)] if partitions else None


def _others(view: View, node: str) -> list[str]:
    return [str(other) for other in view.nodes if str(other) != node]


def _shuffled(view: View, random: Random) -> list[str]:
    return random.sample(list(map(str, view.nodes)), len(view.nodes))


def _between(ones: Sequence[str], others: Sequence[str]) -> list[Link]:
    """In both directions; nothing opens connections to a client."""
    pairs = [(one, other) for one in ones for other in others]
    links = [Link(one, other) for one, other in pairs] + [Link(other, one) for one, other in pairs]
    return [link for link in links if link.target.isdigit()]
