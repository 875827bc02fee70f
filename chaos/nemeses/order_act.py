"""Faults of disks and clocks that a running node obeys as ordered; proved by the node's own word that they fired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any, Final

from ...client import clock
from ..faults.orders import DiskFault, DiskOperation, Orders
from .act import NotTakenHoldError, Stage
from .fault import ClockBump, ClockStrobe, DiskError, NodeFault, OrderedFault
from .operator_act import write_metadata
from .selectors import choose_nodes
from .target import Target

_CLOCK_S: Final = 5.0
_HIT_S: Final = 5.0
_POLL_S: Final = 0.05


class NodeOrders:
    """What all faults together order one node: the union of disk faults, the sum of offsets."""

    def __init__(self, target: Target, node: int) -> None:
        self._target = target
        self._node = node
        self._disk: dict[int, tuple[DiskFault, ...]] = {}
        self._offsets_ms: dict[int, int] = {}
        self._fired: dict[int, Counter[DiskOperation]] = {}

    def give(self, number: int, disk: tuple[DiskFault, ...] = (), offset_ms: int = 0) -> None:
        """What fault `number` orders; nothing ends it."""
        # New orders begin the count anew.
        self._fired = {known: self.fired(known) for known in self._disk}
        self._disk[number], self._offsets_ms[number] = disk, offset_ms
        disks = tuple(fault for faults in self._disk.values() for fault in faults)
        self._target.order(self._node, Orders(disk=disks, clock_offset_ms=sum(self._offsets_ms.values())))

    def fired(self, number: int) -> Counter[DiskOperation]:
        """How often calls of its operations were hit since this fault was first given."""
        operations = {fault.operation for fault in self._disk.get(number, ())}
        now = self._target.fired(self._node)
        earlier = self._fired.get(number, Counter())
        return earlier + Counter({one: count for one, count in now.items() if one in operations})


class OrderAct:
    """`orders` are those of all nodes of one nemesis, by node."""

    def __init__(
        self, number: int, fault: NodeFault, stage: Stage, orders: dict[int, NodeOrders], random: Random
    ) -> None:
        self.repeat_s = fault.interval_ms / 1000 if isinstance(fault, ClockStrobe) else None
        self._number = number
        self._fault = fault
        self._stage = stage
        self._orders = orders
        self._random = random
        self._nodes: tuple[int, ...] = ()
        self._clock_steps: dict[int, int] = {}
        self._is_off = False

    def begin(self) -> Mapping[str, Any]:
        target = self._stage.target
        is_in_sync = not isinstance(self._fault, OrderedFault) or self._stage.settle()
        # Afterwards: another node may lead by then.
        self._nodes = self._stage.choose(self._fault.selector, choose_nodes, self._random)
        self._stage.let_serve(self._nodes)
        value: dict[str, Any] = {"nodes": list(self._nodes)}
        if not is_in_sync:
            value["in_sync"] = False
        self._clock_steps = {node: target.clock_steps(node) for node in self._nodes}
        self._give(is_on=True)
        return value

    def repeat(self) -> None:
        self._give(is_on=self._is_off)

    def end(self) -> Mapping[str, Any]:
        value: dict[str, Any] = {"nodes": list(self._nodes)}
        if isinstance(self._fault, OrderedFault):
            if isinstance(self._fault, DiskError) and self._fault.operation == "sync" and not self._has_fired():
                # Only `flush.messages` and changes of the metadata sync, and there may have been none.
                write_metadata(self._stage.target, f"nemesis-sync-{self._number}")
            # It lasts longer where nothing has come to the disk yet that it would hit.
            clock.wait_until(self._has_fired, timeout_s=_HIT_S, interval_s=_POLL_S)
            fired = {node: self._of(node).fired(self._number) for node in self._nodes}
            self._give(is_on=False)
            for node in self._nodes:
                self._stage.keep_up(node)
            value["fired"] = {str(node): dict(counts) for node, counts in fired.items()}
            unharmed = [node for node, counts in fired.items() if not counts]
            if len(unharmed) == len(fired):
                raise NotTakenHoldError("no call of the disk was hit", **value)
            return value
        # A node that runs reads its clock many times a second, and one that is paused or down does not.
        unread = [node for node in self._nodes if not self._has_read_clock(node)]
        if not any(map(self._steps, self._nodes)):
            unread = list(self._nodes)
        self._give(is_on=False)
        value["clock_steps"] = {str(node): self._steps(node) for node in self._nodes}
        if unread:
            raise NotTakenHoldError(f"the clock of node {unread[0]} was not read while it was wrong", **value)
        return value

    def _give(self, *, is_on: bool) -> None:
        self._is_off = not is_on
        for node in self._nodes:
            orders = self._of(node)
            match self._fault:
                case OrderedFault():
                    orders.give(self._number, self._fault.orders() if is_on else ())
                case ClockBump() | ClockStrobe():
                    orders.give(self._number, offset_ms=self._fault.offset_ms if is_on else 0)
                case _:
                    raise AssertionError(self._fault)

    def _has_fired(self) -> bool:
        states = {self._stage.target.state(node) for node in self._nodes}
        return "up" not in states or any(self._of(node).fired(self._number) for node in self._nodes)

    def _of(self, node: int) -> NodeOrders:
        if node not in self._orders:
            self._orders[node] = NodeOrders(self._stage.target, node)
        return self._orders[node]

    def _steps(self, node: int) -> int:
        """How often the node has met another offset since the fault began."""
        return self._stage.target.clock_steps(node) - self._clock_steps[node]

    def _has_read_clock(self, node: int) -> bool:
        return clock.wait_until(
            lambda: self._steps(node) > 0 or self._stage.target.state(node) != "up",
            timeout_s=_CLOCK_S,
            interval_s=_POLL_S,
        )
