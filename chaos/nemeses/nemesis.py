"""A nemesis: carries out a schedule on a cluster, and writes into a history what it did and what proves it.

Each fault is two `info` events of its kind: `{"begin": {…}}` when it has begun, `{"end": {…}}` when it is mended. In
both is the fault as data with what it hit; `"took_hold": false` beside them, and a sentence in `error`, where proof is
missing. Canaries are events of their own (`link_act.py`). At the end all is healed, and every node serves again, those
too that ended by themselves.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from ...client import clock
from ...local.background_work import BackgroundWork
from ...local.errors import ClusterError, NodeFailedError
from ..histories.operation import NEMESIS, Operation
from .act import Act, NotTakenHoldError, Stage
from .fault import (
    ClockBump,
    ClockStrobe,
    Fault,
    Join,
    LinkFault,
    NodeFault,
    OperatorFault,
    OrderedFault,
    RollingRestart,
)
from .limits import may_stop_quorum
from .link_act import LinkAct
from .node_act import NodeAct, RollingRestartAct
from .operator_act import operator_act
from .order_act import NodeOrders, OrderAct
from .schedule import Schedule, Step
from .target import Target

_ENCODER: Final = msgspec.json.Encoder()
# For all nodes to serve clients again, once nothing is wrong any more.
_READY_S: Final = 90.0
# By time; of the same time, ends come before beginnings, those of joins last.
_END, _LATE_END, _BEGIN, _REPEAT = range(4)


class Nemesis(BackgroundWork):
    """Begins with `__enter__`; `__exit__` ends it early if it still goes on, and heals."""

    def __init__(self, schedule: Schedule, target: Target, *, path: Path, start_ns: int) -> None:
        """Events are appended to the file at `path`, with times since `start_ns` of the monotonic clock.

        Raises ClusterError when the target cannot have one of the faults.
        """
        missing = sorted({*schedule.kinds} - target.kinds)
        if missing:
            raise ClusterError(
                f"this cluster cannot have {', '.join(missing)}: it can have {', '.join(sorted(target.kinds))}"
            )
        super().__init__("nemesis")
        self.operations: list[Operation] = []
        """The events until now, without indices, as `histories.client_history.merged` takes them."""
        self._schedule = schedule
        self._target = target
        self._path = path
        self._start_ns = start_ns
        self._stage = Stage(target, self._note, is_over=self._is_ended.is_set)
        self._orders: dict[int, NodeOrders] = {}

    @property
    def is_over(self) -> bool:
        """Whether the schedule is carried out and all is healed, or something failed."""
        return self._done is not None and self._done.done()

    def wait(self, *, timeout_s: float | None = None) -> None:
        """Until the schedule is carried out and all is healed. Raises ClusterError when a node does not come back,
        TimeoutError after `timeout_s`."""
        assert self._done is not None, "it has begun"
        self._done.result(timeout_s)

    def _work(self) -> None:
        begun_s = clock.monotonic_s()
        # For how long acts took, to wait for replicas or for a process: the schedule waits meanwhile, so that what it
        # has one after the other never comes at once. What is repeated until its end makes nothing wait: it comes less
        # often where it takes longer than its interval.
        lag_s = 0.0
        due: list[tuple[float, int, int, _Doing]] = []
        for number, step in enumerate(self._schedule.steps):
            heapq.heappush(due, (step.at_s, _BEGIN, number, _Doing(step, self._act(number, step.fault))))
        open_: dict[int, _Doing] = {}
        try:
            while due and not self._is_ended.is_set():
                at_s, phase, number, doing = heapq.heappop(due)
                if self._is_ended.wait(max(0.0, begun_s + lag_s + at_s - clock.monotonic_s())):
                    break
                act_begun_s = clock.monotonic_s()
                if (later_s := self._earliest_s(doing, phase, open_.values())) > at_s:
                    heapq.heappush(due, (later_s, phase, number, doing))
                elif phase == _BEGIN:
                    open_[number] = doing
                    self._tell(doing, "begin", doing.act.begin)
                    end = _LATE_END if isinstance(doing.step.fault, Join) else _END
                    heapq.heappush(due, (doing.step.end_s, end, number, doing))
                elif phase in (_END, _LATE_END):
                    del open_[number]
                    self._tell(doing, "end", doing.act.end)
                elif number in open_:
                    self._repeat(doing)
                now_s = clock.monotonic_s()
                if phase != _REPEAT:
                    lag_s += now_s - act_begun_s
                if number in open_ and doing.act.repeat_s is not None:
                    next_s = max(at_s, now_s - begun_s - lag_s) + doing.act.repeat_s
                    heapq.heappush(due, (next_s, _REPEAT, number, doing))
        finally:
            for doing in sorted(open_.values(), key=lambda one: isinstance(one.step.fault, Join)):
                self._tell(doing, "end", doing.act.end)
        if self._schedule.steps:
            self._heal()
        self._is_ended.wait(max(0.0, begun_s + lag_s + self._schedule.length_s - clock.monotonic_s()))
        if any(self._target.state(node) == "down" for node in self._target.view(with_leaders=False).nodes):
            # It ended by itself in the last quiet time.
            self._heal()

    def _earliest_s(self, doing: _Doing, phase: int, open_: Iterable[_Doing]) -> float:
        """Before when a join does not begin or end; anything else may at any time.

        Without a quorum no broker joins, and all that is to end would wait for it. One that leaves gives its replicas
        to nodes that other faults may have down.
        """
        if not isinstance(doing.step.fault, Join):
            return 0.0
        if phase == _LATE_END:
            return max(one.step.end_s for one in open_)
        count = len(self._target.view(with_leaders=False).nodes)
        return max([one.step.end_s for one in open_ if may_stop_quorum(one.step.fault, count)], default=0.0)

    def _act(self, number: int, fault: Fault) -> Act:
        # Whom a fault hits depends on the seed and its place in the schedule, not on how long others took.
        random = Random(f"nemesis {self._schedule.seed} {number}")
        match fault:
            case LinkFault():
                return LinkAct(number, fault, self._stage, random)
            case OrderedFault() | ClockBump() | ClockStrobe():
                return OrderAct(number, fault, self._stage, self._orders, random)
            case NodeFault():
                return NodeAct(fault, self._stage, random)
            case RollingRestart():
                return RollingRestartAct(self._stage)
            case OperatorFault():
                return operator_act(fault, self._stage, random)
            case _:
                raise AssertionError(fault)

    def _repeat(self, doing: _Doing) -> None:
        try:
            doing.act.repeat()
        except (ClusterError, OSError) as failure:
            # It is tried again; the end tells it.
            doing.problem = str(failure)

    def _tell(self, doing: _Doing, phase: str, do: Callable[[], Mapping[str, Any]]) -> None:
        told = doing.step.fault.data()
        self._stage.chosen_ns = clock.monotonic_ns()
        error = doing.problem
        value: dict[str, Any] = {"took_hold": False} if error else {}
        try:
            told |= do()
        except NotTakenHoldError as missing:
            error, value = str(missing), {"took_hold": False}
            told |= missing.value
        except (ClusterError, OSError) as failure:
            # Whatever went wrong with this one, all others are to end.
            error, value = str(failure), {"took_hold": False}
        # A beginning is when the first was about to be hit, an end when the last is mended.
        time_ns = self._stage.chosen_ns - self._start_ns if phase == "begin" else None
        self._note(Operation(0, "info", NEMESIS, 0, doing.step.fault.kind, {phase: told, **value}, error), time_ns)

    def _heal(self) -> None:
        nodes = self._target.view(with_leaders=False).nodes
        deadline_s = clock.monotonic_s() + _READY_S
        while True:
            self._let_run(nodes)
            try:
                self._target.wait_ready(nodes, timeout_s=max(0.0, deadline_s - clock.monotonic_s()))
                return
            except NodeFailedError:
                # One may still have been ending by a fault of its disk: it looked as if it ran.
                is_down = any(self._target.state(node) == "down" for node in nodes)
                if not is_down or clock.monotonic_s() >= deadline_s:
                    raise

    def _let_run(self, nodes: Iterable[int]) -> None:
        errors: list[ClusterError] = []
        for node in nodes:
            try:
                if self._target.state(node) == "paused":
                    self._target.resume(node)
                self._stage.keep_up(node)
            except ClusterError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _note(self, operation: Operation, time_ns: int | None = None) -> None:
        if time_ns is None:
            time_ns = clock.monotonic_ns() - self._start_ns
        operation = msgspec.structs.replace(operation, time=time_ns)
        self.operations.append(operation)
        with self._path.open("ab") as file:
            file.write(_ENCODER.encode(operation) + b"\n")


@dataclass(slots=True)
class _Doing:
    step: Step
    act: Act
    problem: str | None = None
    """What went wrong in between."""
