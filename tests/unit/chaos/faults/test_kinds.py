"""Kinds of faults: one name for each, in the simulation and for real clusters."""

from __future__ import annotations

import pytest

from penstock.chaos.faults.kinds import KINDS, LINK_SELECTORS, NODE_SELECTORS, full_name, simulated_names, split_name
from penstock.chaos.links.proxied_cluster import PROXIES_LACK
from penstock.chaos.simulation.cluster.profiles import KINDS as SIMULATED
from penstock.local.errors import ClusterError


def test_a_name_of_the_simulation_is_a_kind_with_a_selector_of_a_real_cluster() -> None:
    for name in SIMULATED:
        kind, _, selector = name.partition(":")
        assert KINDS[kind].simulated, name
        assert not selector or selector in KINDS[kind].selectors, name
    every = simulated_names("links", "processes", "clocks", "disks", "tiers", "operations", "clients", "delays")
    assert set(every) == SIMULATED
    assert len(every) == len(SIMULATED)


def test_every_kind_is_something_that_the_simulation_or_a_schedule_does() -> None:
    for kind in KINDS.values():
        assert kind.is_real or kind.simulated, kind.name
        assert set(kind.selectors) <= LINK_SELECTORS.keys() | NODE_SELECTORS.keys(), kind.name


def test_what_proxies_cannot_do_to_links_has_a_reason() -> None:
    links = [kind for kind in KINDS.values() if kind.group == "links"]
    assert {kind.name for kind in links if "proxies" not in kind.breakers} == PROXIES_LACK.keys()
    assert all(kind.breakers for kind in links)


@pytest.mark.parametrize("name", ["kill", "kill:all", "partition:majorities-ring", "join"])
def test_a_name_splits_into_kind_and_selector_and_is_put_together_again(name: str) -> None:
    kind, selector = split_name(name)
    assert full_name(kind.name, selector or "") == name


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("earthquake", "'earthquake' is no fault of a real cluster: it is one of partition, slow-link"),
        ("zombie-commit", "'zombie-commit' is no fault of a real cluster"),
        ("kill:majorities-ring", "'majorities-ring' is no selector of kill: it is one of one, minority"),
        ("join:one", "'one' is no selector of join: it has none"),
    ],
)
def test_a_name_that_no_schedule_can_have_is_refused_with_those_that_it_can(name: str, sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence):
        split_name(name)
