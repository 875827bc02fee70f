"""Which addresses nodes and clients of a cluster behind proxies are told, and that a node takes them."""

from __future__ import annotations

from itertools import count

import pytest

from penstock.broker.configuration.node_config import load
from penstock.chaos.links.link import Link, all_links, client_slot, links_of
from penstock.chaos.links.routes import Route, Routes, listener_of

NODE_IDS = (1, 2, 3, 4)
VOTERS = (1, 2, 3)
SLOTS = (client_slot(0), client_slot(1))
DIRECT = 9


@pytest.fixture
def routes() -> Routes:
    ports = count(100)
    return Routes.plan(NODE_IDS, VOTERS, SLOTS, lambda: next(ports))


def test_links_lead_from_every_end_to_every_other_node() -> None:
    links = all_links(["1", "2"], ["client-0"])
    assert set(links) == {Link("client-0", "1"), Link("client-0", "2"), Link("1", "2"), Link("2", "1")}
    assert set(links_of("1", links)) == {Link("client-0", "1"), Link("1", "2"), Link("2", "1")}


def test_each_route_has_a_port_and_a_name_of_its_own(routes: Routes) -> None:
    every = tuple(routes.routes.values())
    own = {*routes.ports.values(), *routes.voters.values()}
    assert len({route.port for route in every} | own) == len(every) + len(own)
    assert len({route.name for route in every}) == len(every)
    assert {route.upstream_port for route in every} <= own


def test_only_nodes_reach_controllers(routes: Routes) -> None:
    assert [route.listener for route in routes.of(Link("4", "1"))] == ["broker", "controller"]
    assert [route.listener for route in routes.of(Link("1", "4"))] == ["broker"]
    assert [route.listener for route in routes.of(Link("client-0", "1"))] == ["broker"]
    assert routes.of(Link("1", "1")) == ()


@pytest.mark.parametrize("node_id", NODE_IDS)
def test_a_node_is_told_no_address_of_another_but_its_own_proxies(routes: Routes, node_id: int) -> None:
    told = routes.properties(node_id, DIRECT)
    own = {route.port for route in routes.routes.values() if route.link.source == str(node_id)}
    for voter in told["controller.quorum.voters"].split(","):
        voter_id, port = int(voter.partition("@")[0]), int(voter.rpartition(":")[2])
        assert port == routes.voters[node_id] if voter_id == node_id else port in own
    assert told["inter.broker.listener.name"] == listener_of(str(node_id))
    # By this name it looks for the others.
    for other in NODE_IDS:
        if other != node_id:
            assert _advertised(routes, other)[listener_of(str(node_id))] in own


@pytest.mark.parametrize("slot", SLOTS)
def test_clients_of_a_slot_are_told_only_its_proxies(routes: Routes, slot: str) -> None:
    own = {route.link.target: route.port for route in routes.routes.values() if route.link.source == slot}
    assert routes.bootstrap(slot, NODE_IDS[:2]) == f"127.0.0.1:{own['1']},127.0.0.1:{own['2']}"
    for node_id in NODE_IDS:
        assert _advertised(routes, node_id)[listener_of(slot)] == own[str(node_id)]


@pytest.mark.parametrize("node_id", NODE_IDS)
def test_a_node_takes_these_properties(routes: Routes, node_id: int) -> None:
    config = load(
        {
            "node.id": str(node_id),
            "process.roles": "broker,controller" if node_id in VOTERS else "broker",
            "controller.listener.names": "CONTROLLER",
            "cluster.secret": "secret",
            "log.dirs": "/data",
            **routes.properties(node_id, DIRECT),
        }
    )
    assert config.inter_broker_listener_name == f"FROM_{node_id}"
    bound = {listener.port for listener in (*config.listeners, *config.controller_listeners)}
    ends_here: set[int] = {route.upstream_port for route in routes.to(node_id)}
    assert ends_here < bound


def test_a_node_alone_has_no_controller_to_reach() -> None:
    ports = count(100)
    routes = Routes.plan([1], [], SLOTS, lambda: next(ports))
    assert {type(route) for route in routes.routes.values()} == {Route}
    assert "controller.quorum.voters" not in routes.properties(1, DIRECT)
    assert {route.listener for route in routes.to(1)} == {"broker"}


def _advertised(routes: Routes, node_id: int) -> dict[str, int]:
    told = routes.properties(node_id, DIRECT)["advertised.listeners"].split(",")
    return {one.partition("://")[0]: int(one.rpartition(":")[2]) for one in told}
