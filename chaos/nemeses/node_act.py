"""Faults of processes, and of disks that are changed while a process is down; proved by the state of the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from ...client import clock
from ...local.errors import ClusterError
from ...protocol.structs import replace
from .act import IN_SYNC_S, NotTakenHoldError, Stage
from .fault import DamageFault, Kill, NodeFault, Pause, Restart, Stop
from .selectors import View, choose_nodes
from .target import NodeState

_STATE_S: Final = 5.0
_POLL_S: Final = 0.02
_READY_S: Final = 60.0


class NodeAct:
    """Kill, stop, pause, restart, and what damages a disk."""

    repeat_s: float | None = None

    def __init__(self, fault: NodeFault, stage: Stage, random: Random) -> None:
        self._fault = fault
        self._stage = stage
        self._random = random
        self._nodes: tuple[int, ...] = ()
        self._held: list[int] = []

    def begin(self) -> Mapping[str, Any]:
        fault, stage = self._fault, self._stage
        is_in_sync = stage.settle(for_damage=isinstance(fault, DamageFault))
        # Afterwards: another node may lead by then.
        chosen = stage.choose(fault.selector, self._choose, self._random)
        value: dict[str, Any] = {"nodes": list(chosen)}
        if not is_in_sync:
            value["in_sync"] = False
        try:
            self._hit(chosen, value)
        except ClusterError as error:
            known = error.value if isinstance(error, NotTakenHoldError) else {}
            raise NotTakenHoldError(str(error), **{**value, **known}) from error
        return value

    def _choose(self, selector: str, view: View, random: Random) -> tuple[int, ...]:
        fault = self._fault
        if isinstance(fault, DamageFault):
            # A node may have no replica, or none with records yet.
            nodes = tuple(node for node in view.nodes if self._stage.target.can_be_damaged(node, fault))
            view = replace(view, nodes=nodes)
        return choose_nodes(selector, view, random)

    def _hit(self, chosen: tuple[int, ...], value: dict[str, Any]) -> None:
        """Adds to `value` what is known of it. Raises ClusterError."""
        fault, stage, target = self._fault, self._stage, self._stage.target
        match fault:
            case Pause():
                _each(chosen, target.pause, self._mark)
                self._expect("paused", value)
            case Kill():
                _each(chosen, target.kill, self._take_down)
                self._expect("down", value)
            case Stop() | Restart():
                _each(chosen, target.stop, self._take_down)
                self._expect("down", value)
                if isinstance(fault, Restart):
                    self._let_up()
                    self._expect("up", value)
            case DamageFault():
                _each(chosen, target.kill, self._take_down)
                self._expect("down", value)
                stage.is_damaged = True
                # By name, as JSON has it.
                value["damage"] = {str(node): target.damage(node, fault, self._random) for node in chosen}
            case _:
                raise AssertionError(fault)

    def repeat(self) -> None:
        """Nothing: it holds by itself."""

    def end(self) -> Mapping[str, Any]:
        if isinstance(self._fault, Pause):
            for node in self._nodes:
                # One that has been killed since is down, and another fault's.
                if self._stage.target.state(node) == "paused":
                    self._stage.target.resume(node)
        else:
            self._let_up()
        value = {"nodes": list(self._nodes)}
        self._expect("up", value)
        return value

    def _mark(self, node: int) -> None:
        self._nodes = (*self._nodes, node)

    def _take_down(self, node: int) -> None:
        self._mark(node)
        self._held.append(node)
        self._stage.hold_down(node)

    def _let_up(self) -> None:
        """Those that this fault holds down yet."""
        # None is held any longer, whatever becomes of the start of another.
        nodes, self._held = self._held, []
        errors: list[ClusterError] = []
        for node in nodes:
            try:
                self._stage.let_up(node)
            except ClusterError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _expect(self, state: NodeState, value: Mapping[str, Any]) -> None:
        """Of each node that no other fault holds down."""
        target, held = self._stage.target, self._stage.held_down

        def others() -> list[int]:
            return [
                node
                for node in self._nodes
                if target.state(node) != state and not (state == "up" and held.get(node, 0) > 0)
            ]

        clock.wait_until(lambda: not others(), timeout_s=_STATE_S, interval_s=_POLL_S)
        if wrong := others():
            told = ", ".join(f"node {node} is {target.state(node)}" for node in wrong)
            raise NotTakenHoldError(f"{told}; expected {state}", **value)


class RollingRestartAct:
    """All of it is in `begin`, which takes as long as it takes."""

    repeat_s: float | None = None

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def begin(self) -> Mapping[str, Any]:
        target = self._stage.target
        restarted: list[int] = []
        for node in target.view(with_leaders=False).nodes:
            if self._stage.is_over():
                break
            clock.wait_until(
                lambda: target.is_in_sync() or self._stage.is_over(), timeout_s=IN_SYNC_S, interval_s=_POLL_S
            )
            target.stop(node)
            if target.state(node) != "down":
                raise NotTakenHoldError(f"node {node} did not stop", nodes=restarted)
            target.begin_start(node)
            target.wait_ready((node,), timeout_s=_READY_S)
            restarted.append(node)
        return {"nodes": restarted}

    def repeat(self) -> None:
        """Nothing: it is done."""

    def end(self) -> Mapping[str, Any]:
        for node in self._stage.target.view(with_leaders=False).nodes:
            self._stage.keep_up(node)
        return {}


def _each(nodes: tuple[int, ...], do: Callable[[int], None], mark: Callable[[int], None]) -> None:
    """All are hit, whatever becomes of one: raises the first error afterwards."""
    errors: list[ClusterError] = []
    for node in nodes:
        mark(node)
        try:
            do(node)
        except ClusterError as error:
            errors.append(error)
    if errors:
        raise NotTakenHoldError(str(errors[0]), nodes=list(nodes))
