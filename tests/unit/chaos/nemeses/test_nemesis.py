"""A nemesis against a cluster that is made of values: what it does, in which order, and what it writes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from errno import ENOSPC
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from waiting import wait_for

from penstock.chaos.faults.kinds import KINDS
from penstock.chaos.faults.orders import DiskOperation, Orders
from penstock.chaos.histories.operation import NEMESIS, Operation
from penstock.chaos.links.link import CutMode, Link
from penstock.chaos.nemeses.fault import (
    AnyFault,
    Bandwidth,
    BitFlip,
    ClockBump,
    ConnectionResets,
    DamageFault,
    DiskError,
    Join,
    Kill,
    PacketLoss,
    Partition,
    Pause,
    PowerLoss,
    Restart,
    SlowDisk,
    SlowLink,
    Stop,
)
from penstock.chaos.nemeses.nemesis import Nemesis
from penstock.chaos.nemeses.schedule import Schedule, Step
from penstock.chaos.nemeses.selectors import View
from penstock.chaos.nemeses.target import NodeState
from penstock.client import clock
from penstock.local.errors import ClusterError, NodeFailedError
from penstock.protocol.structs import replace

DEADLINE_S = 30.0


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not so at once never is, here."""
    for name in (
        "act._CHOICE_S",
        "act.IN_SYNC_S",
        "link_act._HOLDS_S",
        "link_act._WORKS_S",
        "node_act._STATE_S",
        "order_act._CLOCK_S",
        "order_act._HIT_S",
    ):
        monkeypatch.setattr(f"penstock.chaos.nemeses.{name}", 0.05)


class FakeTarget:
    """Three nodes and a client; `ignored` are methods that do nothing."""

    def __init__(self, *ignored: str) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.states: dict[int, NodeState] = {1: "up", 2: "up", 3: "up"}
        self.links: dict[Link, str] = {}
        self.orders: dict[int, Orders] = {}
        self.steps: Counter[int] = Counter()
        self.in_sync = True
        self.with_data = {1, 2, 3}
        self._ignored = ignored

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(kind.name for kind in KINDS.values() if kind.is_real and kind.name != "join")

    def view(self, *, with_leaders: bool = True) -> View:
        known = View(nodes=(1, 2, 3), controller=2, leaders={"t-0": 1}, slots=("client-0",))
        return known if with_leaders else View(nodes=known.nodes, slots=known.slots)

    def _break(self, what: str, links: Sequence[Link]) -> None:
        self.done.append((what, tuple(links)))
        if what not in self._ignored:
            self.links.update(dict.fromkeys(links, what))

    def cut(self, links: Sequence[Link], mode: CutMode) -> None:  # noqa: ARG002 - as every target
        self._break("cut", links)

    def slow(self, links: Sequence[Link], latency_ms: int, jitter_ms: int) -> None:  # noqa: ARG002 - as every target
        self._break("slow", links)

    def limit(self, links: Sequence[Link], kilobytes_s: int) -> None:  # noqa: ARG002 - as every target
        self._break("limit", links)

    def lose(self, links: Sequence[Link], percent: int) -> None:  # noqa: ARG002 - as every target
        self._break("lose", links)

    def lost_packets(self, links: Sequence[Link]) -> Mapping[Link, int]:
        return {link: int(self.links.get(link) == "lose") for link in links}

    def reset(self, links: Sequence[Link]) -> None:
        self.done.append(("reset", tuple(links)))

    def heal(self, links: Sequence[Link]) -> None:
        self.done.append(("heal", tuple(links)))
        if "heal" not in self._ignored:
            for link in links:
                self.links.pop(link, None)

    def round_trips_ms(self, links: Sequence[Link]) -> Mapping[Link, float | None]:
        trips = {"cut": None, "slow": 500.0, "limit": 200.0, "lose": 1.0, "": 1.0}
        return {link: trips[self.links.get(link, "")] for link in links}

    def is_reset(self, link: Link) -> bool:  # noqa: ARG002 - as every target
        return True

    def state(self, node: int) -> NodeState:
        return self.states[node]

    def _become(self, what: str, node: int, state: NodeState) -> None:
        self.done.append((what, node))
        if what not in self._ignored:
            self.states[node] = state

    def kill(self, node: int) -> None:
        self._become("kill", node, "down")

    def pause(self, node: int) -> None:
        self._become("pause", node, "paused")

    def resume(self, node: int) -> None:
        self._become("resume", node, "up")

    def stop(self, node: int) -> None:
        self._become("stop", node, "down")

    def begin_start(self, node: int) -> None:
        self._become("start", node, "up")

    def wait_ready(self, nodes: Sequence[int], *, timeout_s: float) -> None:  # noqa: ARG002 - as every target
        self.done.append(("ready", tuple(nodes)))

    def is_in_sync(self) -> bool:
        return self.in_sync

    def order(self, node: int, orders: Orders) -> None:
        self.orders[node] = orders
        self.steps[node] += "order" not in self._ignored

    def fired(self, node: int) -> Counter[DiskOperation]:
        hit: Counter[DiskOperation] = Counter()
        if "order" not in self._ignored and node in self.orders:
            hit.update(fault.operation for fault in self.orders[node].disk)
        return hit

    def clock_steps(self, node: int) -> int:
        return self.steps[node]

    def can_be_damaged(self, node: int, fault: DamageFault) -> bool:  # noqa: ARG002 - as every target
        return node in self.with_data

    def damage(self, node: int, fault: DamageFault, random: Random) -> Mapping[str, Any]:  # noqa: ARG002 - as every target
        if "damage" in self._ignored:
            raise ClusterError("there was nothing to damage")
        return {"dropped": 17}

    def admins(self) -> Sequence[str]:
        return ()

    def topics(self) -> Sequence[str]:
        return ("t",)

    def join(self) -> int:
        raise ClusterError("nothing joins")

    def leave(self, node: int) -> None:  # noqa: ARG002 - as every target
        raise ClusterError("nothing leaves")


class Ending(FakeTarget):
    """This node looked as if it ran, and ends while it is waited for."""

    def __init__(self, node: int) -> None:
        super().__init__()
        self._ending = node

    def wait_ready(self, nodes: Sequence[int], *, timeout_s: float) -> None:
        super().wait_ready(nodes, timeout_s=timeout_s)
        if self.done.count(("ready", nodes)) == 1:
            self.states[self._ending] = "down"
            raise NodeFailedError(f"node {self._ending} ended before it was ready")


def carry_out(
    target: FakeTarget, path: Path, *faults: AnyFault, places: Sequence[tuple[float, float]] = ()
) -> list[Operation]:
    """One after the other, or at these places of (time, duration); what was written, in the order of its times."""
    placed = places or [(0.01 + 0.03 * number, 0.01) for number in range(len(faults))]
    steps = tuple(Step(at_s, duration_s, fault) for (at_s, duration_s), fault in zip(placed, faults, strict=True))
    schedule = Schedule(length_s=max(step.end_s for step in steps), steps=steps, seed=7)
    start_ns = clock.monotonic_ns()
    with Nemesis(schedule, target, path=path / "nemesis.jsonl", start_ns=start_ns) as nemesis:
        nemesis.wait(timeout_s=DEADLINE_S)
    written = [msgspec.json.decode(line, type=Operation) for line in (path / "nemesis.jsonl").read_bytes().splitlines()]
    assert written == nemesis.operations
    assert all(event.type == "info" and event.process == NEMESIS and event.time >= 0 for event in written)
    return sorted(written, key=lambda event: event.time)


def test_a_cut_is_proved_by_a_canary_of_each_link_that_fails_and_works_again(tmp_path: Path) -> None:
    target = FakeTarget()
    events = carry_out(target, tmp_path, Partition(selector="leaders", mode="reset"))
    links = [["1", "2"], ["1", "3"], ["2", "1"], ["3", "1"]]
    assert [event.f for event in events] == ["partition", *4 * ["canary"], *4 * ["canary"], "partition"]
    assert events[0].value == {"begin": {"kind": "partition", "selector": "leaders", "mode": "reset", "links": links}}
    assert [event.value for event in events[1:5]] == [
        {"link": link, "works": False, "during": "partition"} for link in links
    ]
    assert [event.value for event in events[5:9]] == [{"link": link, "works": True, "during": None} for link in links]
    assert "end" in events[9].value
    assert target.links == {}


@pytest.mark.parametrize(
    ("ignored", "fault", "sentence"),
    [
        ("cut", Partition(selector="1>2"), "1→2 worked as ever"),
        ("slow", SlowLink(selector="1>2"), "1→2 worked as ever"),
        ("lose", PacketLoss(selector="1>2"), "no packet was lost on 1→2"),
        ("kill", Kill(selector="1"), "node 1 is up; expected down"),
        ("pause", Pause(selector="1"), "node 1 is up; expected paused"),
        ("damage", PowerLoss(selector="1"), "there was nothing to damage"),
        ("order", DiskError(selector="1"), "no call of the disk was hit"),
        ("order", ClockBump(selector="1"), "the clock of node 1 was not read while it was wrong"),
    ],
)  # fmt: skip
def test_what_did_not_take_hold_is_written_so_and_mended(
    ignored: str, fault: AnyFault, sentence: str, tmp_path: Path
) -> None:
    target = FakeTarget(ignored)
    events = carry_out(target, tmp_path, fault)
    failed = [event for event in events if event.error is not None]
    assert [event.error for event in failed] == [sentence]
    assert failed[0].f == fault.kind
    assert failed[0].value["took_hold"] is False
    assert set(target.states.values()) == {"up"}
    assert all(orders == Orders() for orders in target.orders.values())


def test_a_link_that_does_not_work_afterwards_is_written_so(tmp_path: Path) -> None:
    nemesis_events = carry_out(FakeTarget("heal"), tmp_path, Partition(selector="1>2"))
    assert nemesis_events[-1].error == "1→2 did not work after the fault"
    assert nemesis_events[-2].value == {"link": ["1", "2"], "works": False, "during": None}


@pytest.mark.thorough
def test_faults_that_follow_each_other_do_so_however_long_one_takes(tmp_path: Path) -> None:
    class Slow(FakeTarget):
        def kill(self, node: int) -> None:
            # Longer than the whole schedule.
            clock.wait_until(lambda: False, timeout_s=0.3)
            super().kill(node)

    events = carry_out(Slow(), tmp_path, Kill(selector="1"), Pause(selector="2"), Kill(selector="3"))
    assert [(event.f, *event.value) for event in events] == [
        ("kill", "begin"), ("kill", "end"), ("pause", "begin"), ("pause", "end"), ("kill", "begin"), ("kill", "end"),
    ]  # fmt: skip


def test_a_fault_of_links_that_ends_leaves_what_another_one_does_to_them(tmp_path: Path) -> None:
    target = FakeTarget()
    faults = Partition(selector="1>2"), SlowLink(selector="1>2,1>3")
    carry_out(target, tmp_path, *faults, places=[(0.0, 0.4), (0.1, 0.1)])
    assert [what for what, *_ in target.done if what != "ready"] == ["cut", "slow", "heal", "cut", "heal"]


@pytest.mark.thorough
def test_a_fault_of_links_that_ends_leaves_all_that_others_do_to_them(tmp_path: Path) -> None:
    target = FakeTarget()
    faults = SlowLink(selector="1>2"), Bandwidth(selector="1>2"), Partition(selector="1>2")
    carry_out(target, tmp_path, *faults, places=[(0.0, 0.5), (0.1, 0.4), (0.2, 0.1)])
    assert [what for what, *_ in target.done if what != "ready"][:6] == [
        "slow",
        "limit",
        "cut",
        "heal",
        "slow",
        "limit",
    ]
    assert target.links == {}


def test_orders_of_faults_of_one_node_add_up_and_end_one_by_one(tmp_path: Path) -> None:
    given: list[tuple[int, int]] = []

    class Noting(FakeTarget):
        def order(self, node: int, orders: Orders) -> None:
            super().order(node, orders)
            given.append((len(orders.disk), orders.clock_offset_ms))

    target = Noting()
    faults = SlowDisk(selector="1"), ClockBump(selector="1", offset_ms=500), ClockBump(selector="1", offset_ms=70)
    carry_out(target, tmp_path, *faults, places=[(0.0, 0.4), (0.1, 0.2), (0.2, 0.15)])
    assert given == [(2, 0), (2, 500), (2, 570), (2, 70), (2, 0), (0, 0)]


def test_hits_are_counted_once_and_for_each_fault_by_itself(tmp_path: Path) -> None:
    # This disk has one hit of each operation under every order.
    faults = SlowDisk(selector="1"), DiskError(selector="1", operation="write")
    events = carry_out(FakeTarget(), tmp_path, *faults, places=[(0.0, 0.3), (0.1, 0.1)])
    fired = {event.f: event.value["end"]["fired"] for event in events if "end" in event.value}
    assert fired == {"disk-error": {"1": {"write": 2}}, "slow-disk": {"1": {"write": 4, "sync": 3}}}


def test_a_node_that_two_faults_hold_down_starts_when_both_have_ended(tmp_path: Path) -> None:
    target = FakeTarget()
    events = carry_out(target, tmp_path, Kill(selector="1"), Kill(selector="1,2"), places=[(0.0, 0.2), (0.1, 0.3)])
    assert [event.error for event in events] == [None] * 4
    assert [one for one in target.done if one[0] == "start"] == [("start", 1), ("start", 2)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("joins_at_s", "selector", "kill_at_s", "expected"),
    [
        # Its replicas go to nodes that run.
        (0.0, "1", 0.02, ["join", "kill", "start", "leave"]),
        (0.0, "1", 0.1, ["join", "leave", "kill", "start"]),
        # At the same time, though its number is the lower one.
        (0.1, "1", 0.0, ["kill", "join", "start", "leave"]),
        (0.05, "1", 0.0, ["kill", "join", "start", "leave"]),
        # Without a quorum it could not join, and the end of the other fault would wait for it.
        (0.05, "majority", 0.0, ["kill", "kill", "start", "start", "join", "leave"]),
    ],
)
def test_a_node_joins_where_there_is_a_quorum_and_leaves_when_no_other_fault_may_keep_a_node_down(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    joins_at_s: float,
    selector: str,
    kill_at_s: float,
    expected: list[str],
) -> None:

    class Joining(FakeTarget):
        @property
        def kinds(self) -> frozenset[str]:
            return super().kinds | {"join"}

    class JoinAct:
        repeat_s = None

        def begin(self) -> Mapping[str, Any]:
            target.done.append(("join",))
            return {}

        def repeat(self) -> None:
            raise AssertionError("it is not repeated")

        def end(self) -> Mapping[str, Any]:
            target.done.append(("leave",))
            return {}

    monkeypatch.setattr("penstock.chaos.nemeses.nemesis.operator_act", lambda *_: JoinAct())
    target = Joining()
    places = [(joins_at_s, 0.1), (kill_at_s, 0.2)]
    carry_out(target, tmp_path, Join(), Kill(selector=selector), places=places)
    happened = [one[0] for one in target.done if one[0] in ("join", "kill", "start", "leave")]
    assert happened == expected


def test_a_node_that_ended_by_a_fault_of_its_disk_is_started(tmp_path: Path) -> None:
    class EndingByDisk(FakeTarget):
        def order(self, node: int, orders: Orders) -> None:
            super().order(node, orders)
            if orders.disk:
                self.states[node] = "down"

    target = EndingByDisk()
    carry_out(target, tmp_path, DiskError(selector="1", operation="sync"))
    assert ("start", 1) in target.done


@pytest.mark.parametrize(
    ("faults", "in_sync"),
    [
        ((PowerLoss(), Kill(), SlowDisk()), [True, False, False]),
        # The node whose data are damaged may be the only one in sync, as long as those that were down are not.
        ((Kill(), Kill(), PowerLoss()), [True, True, False]),
        ((Pause(), PowerLoss()), [True, True]),
    ],
)
def test_nodes_are_hit_around_damage_only_when_replicas_are_in_sync_or_it_is_written(
    faults: tuple[AnyFault, ...], in_sync: list[bool], tmp_path: Path
) -> None:
    target = FakeTarget()
    target.in_sync = False
    events = carry_out(target, tmp_path, *faults)
    begins = [event.value["begin"] for event in events if "begin" in event.value]
    assert [begin.get("in_sync", True) for begin in begins] == in_sync


def test_a_leader_is_chosen_once_replicas_are_in_sync(tmp_path: Path) -> None:
    class Moving(FakeTarget):
        def is_in_sync(self) -> bool:
            self.leader = 3
            return True

        leader = 1

        def view(self, *, with_leaders: bool = True) -> View:
            return replace(super().view(with_leaders=with_leaders), leaders={"t-0": self.leader})

    events = carry_out(Moving(), tmp_path, Kill(selector="leaders"), PowerLoss(selector="leaders"))
    assert [event.value["begin"]["nodes"] for event in events if "begin" in event.value] == [[1], [3]]


def test_resets_go_on_until_the_fault_ends(tmp_path: Path) -> None:
    def count() -> int:
        return sum(what == "reset" for what, *_ in target.done)

    target = FakeTarget()
    steps = (Step(0, 100, ConnectionResets(selector="1>2", interval_ms=10)),)
    with Nemesis(Schedule(length_s=100, steps=steps), target, path=tmp_path / "nemesis.jsonl", start_ns=0):
        wait_for(lambda: count() > 3, "there are resets")
    told = count()
    assert target.done[-2:] == [("heal", (Link("1", "2"),)), ("ready", (1, 2, 3))]
    assert count() == told


def test_resets_that_take_longer_than_their_interval_come_less_often_and_end_in_time(tmp_path: Path) -> None:
    class Slow(FakeTarget):
        def reset(self, links: Sequence[Link]) -> None:
            clock.wait_until(lambda: False, timeout_s=0.05)
            super().reset(links)

    target = Slow()
    carry_out(target, tmp_path, ConnectionResets(selector="1>2", interval_ms=1), places=[(0.0, 0.3)])
    # One with the beginning, and those that there is time for: not the three hundred of a quick cluster.
    assert 2 <= [what for what, *_ in target.done].count("reset") <= 8


def test_a_clock_of_a_node_that_is_down_all_the_time_was_not_read(tmp_path: Path) -> None:
    class Down(FakeTarget):
        def clock_steps(self, node: int) -> int:
            return 0 if self.states[node] == "down" else super().clock_steps(node)

    faults = Kill(selector="1"), ClockBump(selector="1"), ClockBump(selector="1,2")
    events = carry_out(Down(), tmp_path, *faults, places=[(0.0, 0.5), (0.1, 0.1), (0.3, 0.1)])
    ends = [(event.f, event.error) for event in events if "end" in event.value]
    assert ends == [
        ("clock-bump", "the clock of node 1 was not read while it was wrong"), ("clock-bump", None), ("kill", None)
    ]  # fmt: skip


def test_what_goes_wrong_between_beginning_and_end_is_told_at_the_end(tmp_path: Path) -> None:
    class Failing(FakeTarget):
        def reset(self, links: Sequence[Link]) -> None:
            super().reset(links)
            if len(self.done) == 2:
                raise ClusterError("the proxy did not answer")

    target = Failing()
    events = carry_out(
        target, tmp_path, ConnectionResets(selector="1>2", interval_ms=10), Kill(), places=[(0.0, 0.3), (0.4, 0.1)]
    )
    told = [(event.f, *event.value, event.error) for event in events if event.f != "canary"]
    assert told[1] == ("connection-resets", "end", "took_hold", "the proxy did not answer")
    assert told[2:] == [("kill", "begin", None), ("kill", "end", None)]
    assert ("heal", (Link("1", "2"),)) in target.done


def test_a_fault_that_fails_in_any_way_leaves_no_other_one_behind(tmp_path: Path) -> None:
    class Failing(FakeTarget):
        def damage(self, node: int, fault: DamageFault, random: Random) -> Mapping[str, Any]:  # noqa: ARG002 - as every target
            raise OSError(ENOSPC, "No space left on device")

        def begin_start(self, node: int) -> None:
            if node == 1:
                raise ClusterError("port 7 is in use")
            super().begin_start(node)

    target = Failing()
    steps = Step(0.0, 0.3, Kill(selector="1,2")), Step(0.1, 0.1, PowerLoss(selector="3"))
    path = tmp_path / "nemesis.jsonl"
    with (
        pytest.raises(ClusterError, match="port 7"),
        Nemesis(Schedule(length_s=1, steps=steps), target, path=path, start_ns=0) as nemesis,
    ):
        nemesis.wait(timeout_s=DEADLINE_S)
    failed = [(event.f, event.error) for event in nemesis.operations if event.error]
    assert failed == [("power-loss", "[Errno 28] No space left on device"), ("kill", "port 7 is in use")]
    assert target.states == {1: "down", 2: "up", 3: "up"}


def test_a_node_that_is_killed_as_it_does_not_stop_is_started(tmp_path: Path) -> None:
    class Stubborn(FakeTarget):
        def stop(self, node: int) -> None:
            super().stop(node)
            raise ClusterError(f"node {node} did not stop within 20 s and was killed")

    faults: tuple[AnyFault, ...] = Restart(selector="1,2"), Stop(selector="1,2")
    for number, fault in enumerate(faults):
        folder = tmp_path / str(number)
        folder.mkdir()
        target = Stubborn()
        begin, end = carry_out(target, folder, fault)
        assert (begin.error, begin.value["begin"]["nodes"]) == (
            "node 1 did not stop within 20 s and was killed",
            [1, 2],
        )
        assert (end.error, end.value["end"]["nodes"]) == (None, [1, 2])
        assert target.states == {1: "up", 2: "up", 3: "up"}


def test_what_is_damaged_out_of_sync_is_written_so_though_the_damage_failed(tmp_path: Path) -> None:
    target = FakeTarget("damage")
    target.in_sync = False
    events = carry_out(target, tmp_path, Kill(selector="1"), PowerLoss(selector="2"))
    (begin,) = [event for event in events if event.error]
    assert begin.error == "there was nothing to damage"
    assert begin.value["begin"] | {"kind": ""} == {"kind": "", "selector": "2", "nodes": [2], "in_sync": False}


def test_a_disk_fails_only_when_its_node_serves_again(tmp_path: Path) -> None:
    """It was still ending by an earlier fault of its disk when it was chosen."""

    class Noting(Ending):
        def order(self, node: int, orders: Orders) -> None:
            super().order(node, orders)
            self.done.append(("order", node))

    target = Noting(1)
    events = carry_out(target, tmp_path, DiskError(selector="1"))
    assert [event.error for event in events] == [None, None]
    assert target.done[:4] == [("ready", (1,)), ("start", 1), ("ready", (1,)), ("order", 1)]


def test_only_a_node_that_has_such_data_is_damaged(tmp_path: Path) -> None:
    target = FakeTarget()
    target.with_data = {3}
    events = carry_out(target, tmp_path, *[BitFlip(selector="one")] * 5)
    assert [event.value["begin"]["nodes"] for event in events if "begin" in event.value] == [[3]] * 5


def test_a_node_that_ends_by_itself_when_all_has_healed_is_started_at_the_end(tmp_path: Path) -> None:
    class Crashing(FakeTarget):
        def wait_ready(self, nodes: Sequence[int], *, timeout_s: float) -> None:
            super().wait_ready(nodes, timeout_s=timeout_s)
            if self.done.count(("ready", nodes)) == 1:
                self.states[3] = "down"

    target = Crashing()
    carry_out(target, tmp_path, Pause(selector="1"))
    assert target.done[2:] == [("ready", (1, 2, 3)), ("start", 3), ("ready", (1, 2, 3))]


def test_a_node_that_was_still_ending_when_all_healed_is_started(tmp_path: Path) -> None:
    target = Ending(3)
    carry_out(target, tmp_path, Pause(selector="1"))
    assert target.done[2:5] == [("ready", (1, 2, 3)), ("start", 3), ("ready", (1, 2, 3))]


def test_without_faults_a_node_that_ends_by_itself_is_started_at_the_end(tmp_path: Path) -> None:
    target = FakeTarget()
    target.states[3] = "down"
    schedule = Schedule(length_s=0.05)
    with Nemesis(schedule, target, path=tmp_path / "nemesis.jsonl", start_ns=clock.monotonic_ns()) as nemesis:
        nemesis.wait(timeout_s=DEADLINE_S)
    assert target.done == [("start", 3), ("ready", (1, 2, 3))]
    assert nemesis.operations == []


def test_an_end_before_its_time_mends_what_holds(tmp_path: Path) -> None:
    target = FakeTarget()
    steps = Step(0, 100, Kill(selector="1")), Step(0, 100, Partition(selector="2>3"))
    with Nemesis(Schedule(length_s=200, steps=steps), target, path=tmp_path / "nemesis.jsonl", start_ns=0) as nemesis:
        wait_for(lambda: "down" in target.states.values() and target.links, "both faults hold")
    assert nemesis.is_over
    assert target.links == {}
    assert set(target.states.values()) == {"up"}
    assert target.done[-1] == ("ready", (1, 2, 3))


def test_the_same_schedule_hits_the_same_nodes(tmp_path: Path) -> None:
    hits = []
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        events = carry_out(FakeTarget(), folder, Kill(), Pause(selector="minority"), Kill(selector="majority"))
        hits.append([event.value["begin"]["nodes"] for event in events if "begin" in event.value])
    assert hits[0] == hits[1] == hits[2]


def test_a_kind_that_the_target_lacks_is_refused(tmp_path: Path) -> None:
    schedule = Schedule(length_s=9, steps=(Step(1, 2, msgspec.convert({"kind": "join"}, type=AnyFault)),))
    with pytest.raises(ClusterError, match="this cluster cannot have join: it can have bandwidth"):
        Nemesis(schedule, FakeTarget(), path=tmp_path / "nemesis.jsonl", start_ns=0)
