"""Faults of one link that a test holds at the same time."""

from __future__ import annotations

from random import Random

from penstock.chaos.simulation.application.broken_links import BrokenLinks
from penstock.chaos.simulation.cluster.loop import new_loop
from penstock.chaos.simulation.cluster.network import Network

AB, BA, AC = ("a", "b"), ("b", "a"), ("a", "c")


def network() -> Network:
    return Network(new_loop(Random(1)), Random(1), lambda _: None)


def test_a_link_is_cut_until_the_last_fault_of_it_is_healed() -> None:
    wires = network()
    links = BrokenLinks(wires)
    heal_first = links.cut([AB, BA])
    heal_second = links.cut([AB, AC])
    heal_first()
    assert wires.cuts == [AB, AC]
    heal_second()
    assert not wires.cuts


def test_delays_of_one_link_add_up_and_end_one_by_one() -> None:
    wires = network()
    links = BrokenLinks(wires)
    heal_first = links.slow([AB], 0.5)
    heal_second = links.slow([AB, AC], 0.25)
    assert wires.slow == {AB: 0.75, AC: 0.25}
    heal_first()
    assert wires.slow == {AB: 0.25, AC: 0.25}
    heal_second()
    assert not wires.slow
