"""Which toxics and switches the proxies of a link get, in which order, and that healing leaves none."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import get_args

import pytest

from penstock.chaos.links.link import CutMode, Link, Stream, client_slot
from penstock.chaos.links.link_faults import LinkFaults
from penstock.chaos.links.routes import Routes
from penstock.local.errors import ClusterError

LINK = Link("1", "2")
BROKER, CONTROLLER = "1-to-2-broker", "1-to-2-controller"


class RememberingProxies:
    """What is wrong with each proxy; refuses what toxiproxy refuses."""

    def __init__(self) -> None:
        self.toxics: dict[str, list[str]] = {}
        self.closed: set[str] = set()
        self.switches: list[tuple[str, bool]] = []

    def set_enabled(self, name: str, *, is_enabled: bool) -> None:
        self.switches.append((name, is_enabled))
        (self.closed.discard if is_enabled else self.closed.add)(name)

    def add_toxic(self, name: str, toxic: str, kind: str, stream: str, attributes: Mapping[str, int]) -> None:
        known = self.toxics.setdefault(name, [])
        assert toxic not in known, "a name stands for one toxic"
        assert toxic == f"{kind}-{stream}"
        assert attributes
        known.append(toxic)

    def remove_toxic(self, name: str, toxic: str) -> None:
        self.toxics[name].remove(toxic)
        if not self.toxics[name]:
            del self.toxics[name]


@pytest.fixture
def proxies() -> RememberingProxies:
    return RememberingProxies()


@pytest.fixture
def faults(proxies: RememberingProxies) -> LinkFaults:
    ports = count(100)
    return LinkFaults(Routes.plan([1, 2, 3], [1, 2, 3], [client_slot(0)], lambda: next(ports)), proxies)


@pytest.mark.parametrize("mode", get_args(CutMode))
def test_a_cut_concerns_the_proxies_of_its_link_only_and_heals(
    faults: LinkFaults, proxies: RememberingProxies, mode: CutMode
) -> None:
    faults.cut([LINK], mode)
    assert faults.is_cut(LINK)
    assert not faults.is_cut(Link("2", "1"))
    assert (proxies.closed or proxies.toxics.keys()) == {BROKER, CONTROLLER}
    faults.heal([LINK])
    assert not faults.is_cut(LINK)
    assert not proxies.closed
    assert not proxies.toxics


def test_a_silent_link_drops_what_is_sent_before_it_holds_back_the_end(
    faults: LinkFaults, proxies: RememberingProxies
) -> None:
    faults.cut([LINK], "silence")
    order = proxies.toxics[BROKER]
    for stream in ("upstream", "downstream"):
        assert order.index(f"timeout-{stream}") < order.index(f"slow_close-{stream}")


@pytest.mark.parametrize(("stream", "touched"), [("requests", "upstream"), ("responses", "downstream")])
def test_a_cut_of_one_stream_leaves_the_other(
    faults: LinkFaults, proxies: RememberingProxies, stream: Stream, touched: str
) -> None:
    faults.cut([LINK], "silence", stream)
    assert all(toxic.endswith(touched) for toxic in proxies.toxics[BROKER])


@pytest.mark.parametrize("before", get_args(CutMode))
@pytest.mark.parametrize("after", get_args(CutMode))
def test_one_cut_replaces_another(
    faults: LinkFaults, proxies: RememberingProxies, before: CutMode, after: CutMode
) -> None:
    faults.cut([LINK], before)
    faults.cut([LINK], after)
    assert bool(proxies.closed) == (after == "refusal")
    assert bool(proxies.toxics) == (after != "refusal")
    faults.heal()
    assert not proxies.closed
    assert not proxies.toxics


def test_slower_again_is_one_latency(faults: LinkFaults, proxies: RememberingProxies) -> None:
    faults.slow([LINK], 10)
    faults.slow([LINK], 20, 5)
    faults.limit([LINK], 1)
    assert sorted(proxies.toxics[BROKER]) == [
        "bandwidth-downstream",
        "bandwidth-upstream",
        "latency-downstream",
        "latency-upstream",
    ]


def test_a_link_of_a_node_that_is_down_refuses_whatever_heals(faults: LinkFaults, proxies: RememberingProxies) -> None:
    faults.on_node_down(2)
    ends_at_2 = {"client-0-to-2-broker", BROKER, CONTROLLER, "3-to-2-broker", "3-to-2-controller"}
    assert proxies.closed == ends_at_2
    faults.cut([LINK], "refusal")
    faults.heal()
    assert proxies.closed == ends_at_2
    faults.on_node_up(2)
    assert not proxies.closed


def test_a_link_that_is_refused_stays_so_when_its_target_starts(
    faults: LinkFaults, proxies: RememberingProxies
) -> None:
    faults.cut([LINK], "refusal")
    faults.on_node_down(2)
    faults.on_node_up(2)
    assert proxies.closed == {BROKER, CONTROLLER}


def test_a_reset_closes_and_opens_but_not_what_is_refused(faults: LinkFaults, proxies: RememberingProxies) -> None:
    faults.reset([LINK])
    assert proxies.switches == [(BROKER, False), (BROKER, True), (CONTROLLER, False), (CONTROLLER, True)]
    faults.cut([LINK], "refusal")
    faults.reset([LINK])
    assert proxies.closed == {BROKER, CONTROLLER}


def test_a_link_that_a_reset_left_closed_is_opened_by_healing(
    faults: LinkFaults, proxies: RememberingProxies, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, *, is_enabled: bool) -> None:
        if is_enabled:
            raise ClusterError("toxiproxy-server does not answer")
        RememberingProxies.set_enabled(proxies, name, is_enabled=is_enabled)

    with monkeypatch.context() as patched:
        patched.setattr(proxies, "set_enabled", refuse)
        with pytest.raises(ClusterError, match="does not answer"):
            faults.reset([LINK])
    assert proxies.closed
    faults.heal([LINK])
    assert not proxies.closed


def test_a_link_that_there_is_not_and_a_cut_that_there_is_not_are_named(faults: LinkFaults) -> None:
    with pytest.raises(ClusterError, match="no link 1→9"):
        faults.heal([Link("1", "9")])
    with pytest.raises(ClusterError, match="silence, reset, refusal"):
        faults.cut([LINK], "noise")  # type: ignore[arg-type]
    with pytest.raises(ClusterError, match="only responses"):
        faults.cut([LINK], "refusal", "responses")
