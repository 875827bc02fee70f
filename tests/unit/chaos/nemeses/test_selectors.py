"""Selectors: which nodes and links a fault hits, by what Jepsen's nemeses promise of them."""

from __future__ import annotations

from random import Random

import pytest

from penstock.chaos.faults.kinds import LINK_SELECTORS, NODE_SELECTORS
from penstock.chaos.links.link import Link
from penstock.chaos.nemeses.selectors import View, choose_links, choose_nodes

SEEDS = range(100)


def view(node_count: int) -> View:
    nodes = tuple(range(1, node_count + 1))
    return View(nodes=nodes, controller=2, leaders={"t-0": 1, "t-1": 3}, slots=("client-0", "client-1"))


def cuts(selector: str, node_count: int, seed: int) -> tuple[Link, ...]:
    links = choose_links(selector, view(node_count), Random(seed))
    assert links
    assert len(set(links)) == len(links)
    assert all(link.source != link.target and link.target.isdigit() for link in links)
    assert links == choose_links(selector, view(node_count), Random(seed))
    return links


def reached(node: str, links: tuple[Link, ...], node_count: int) -> set[str]:
    """Nodes from which connections to this one can be made, itself among them."""
    every = set(map(str, range(1, node_count + 1)))
    return every - {link.source for link in links if link.target == node}


def is_both_ways(links: tuple[Link, ...]) -> bool:
    return all(Link(link.target, link.source) in links for link in links if link.source.isdigit())


@pytest.mark.parametrize("node_count", [3, 4, 5, 7])
def test_in_a_majorities_ring_each_node_is_reached_by_a_majority_and_each_by_another_one(node_count: int) -> None:
    for seed in SEEDS:
        links = cuts("majorities-ring", node_count, seed)
        majorities = {frozenset(reached(str(node), links, node_count)) for node in range(1, node_count + 1)}
        assert all(len(majority) == node_count // 2 + 1 for majority in majorities)
        assert len(majorities) == node_count


@pytest.mark.parametrize("node_count", [3, 5])
def test_a_bridge_joins_two_halves_that_do_not_reach_each_other(node_count: int) -> None:
    for seed in SEEDS:
        links = cuts("bridge", node_count, seed)
        assert is_both_ways(links)
        whole = [node for node in map(str, range(1, node_count + 1)) if not any(node in link for link in links)]
        assert len(whole) == 1
        assert len(links) == 2 * ((node_count - 1) // 2) ** 2


@pytest.mark.parametrize(("selector", "sides"), [("majority", {(2, 3)}), ("minority-third", {(1, 4)})])
def test_halves_and_thirds_are_cut_off_from_each_other_and_not_within(
    selector: str, sides: set[tuple[int, int]]
) -> None:
    found = set()
    for seed in SEEDS:
        links = cuts(selector, 5, seed)
        assert is_both_ways(links)
        groups = {frozenset(reached(str(node), links, 5)) for node in range(1, 6)}
        found.add(tuple(sorted(map(len, groups))))
    assert found == sides


def test_one_node_is_cut_off_from_nodes_and_clients_and_a_leader_keeps_its_clients() -> None:
    for seed in SEEDS:
        one = cuts("one", 3, seed)
        (node,) = {link.target for link in one if link.source == "client-0"}
        assert all(node in link for link in one)
        assert len(one) == 2 * 2 + 2
        leader = cuts("leaders", 3, seed)
        assert len(leader) == 4
        assert any(all(name in link for link in leader) for name in ("1", "3"))
        assert {link.target for link in cuts("controllers", 3, seed) if link.source != "2"} == {"2"}


def test_one_way_takes_one_direction_of_one_node() -> None:
    directions = set()
    for seed in SEEDS:
        links = cuts("one-way", 5, seed)
        assert not any(Link(link.target, link.source) in links for link in links)
        directions.add((len({link.source for link in links}), len({link.target for link in links})))
    assert directions == {(1, 4), (4, 1)}


def test_a_client_is_cut_off_from_a_leader_and_from_nothing_else() -> None:
    found = {cuts("client-from-leader", 3, seed) for seed in SEEDS}
    assert found == {(Link(f"client-{slot}", leader),) for slot in (0, 1) for leader in ("1", "3")}


@pytest.mark.parametrize(
    ("selector", "counts"),
    [("one", {1}), ("minority", {1, 2}), ("majority", {3, 4}), ("all", {5}), ("leaders", {1}), ("controllers", {1})],
)
def test_nodes_are_as_many_as_the_selector_says(selector: str, counts: set[int]) -> None:
    chosen = [choose_nodes(selector, view(5), Random(seed)) for seed in SEEDS]
    assert set(map(len, chosen)) == counts
    assert all(list(nodes) == sorted(set(nodes)) and set(nodes) <= {1, 2, 3, 4, 5} for nodes in chosen)


def test_what_is_named_is_hit_and_what_is_not_there_is_nothing() -> None:
    quiet = View(nodes=(1, 2, 3), slots=("client-0",))
    assert choose_nodes("3,1,9", quiet, Random(1)) == (1, 3)
    assert choose_links("client-0>1,2>1", quiet, Random(1)) == (Link("2", "1"), Link("client-0", "1"))
    assert choose_links("client-1>1,2>1,2>4,3>3", quiet, Random(1)) == (Link("2", "1"),)
    assert choose_nodes("leaders", quiet, Random(1)) == ()
    for selector in ("leaders", "controllers", "client-from-leader"):
        assert choose_links(selector, quiet, Random(1)) == ()


def test_a_node_alone_has_no_links_but_those_of_its_clients() -> None:
    alone = View(nodes=(1,), controller=1, leaders={"t-0": 1}, slots=("client-0",))
    assert {selector: choose_links(selector, alone, Random(1)) for selector in LINK_SELECTORS} == {
        **dict.fromkeys(LINK_SELECTORS, ()),
        "one": (Link("client-0", "1"),),
        "client-from-leader": (Link("client-0", "1"),),
    }
    assert all(choose_nodes(selector, alone, Random(1)) == (1,) for selector in NODE_SELECTORS)


def test_every_selector_of_the_vocabulary_chooses_something() -> None:
    for selector in LINK_SELECTORS:
        assert cuts(selector, 3, 1)
    for selector in NODE_SELECTORS:
        assert choose_nodes(selector, view(3), Random(1))
