"""What an operator does to a cluster that serves, over its HTTP administration; proved by the cluster's own answers.

A request that is lost or refused, as the active controller changes, is made again for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, TypeVar

from ...client import clock
from ...client.admin import Admin, AdminError
from ...local.errors import ClusterError
from ...protocol.rest.described_configs import ConfigChanges
from ...protocol.rest.elections import ElectionRequest, PartitionName
from ...protocol.rest.moves import Assignment, CancelRequest, ReassignmentRequest
from ...protocol.rest.topic_overview import PartitionOverview
from ...protocol.rest.topics import CreateTopic
from .act import Act, NotTakenHoldError, Stage
from .fault import (
    CancelledReassignment,
    Drain,
    Join,
    MinIsr,
    MovedLeader,
    OperatorFault,
    PreferredElection,
    QuorumTransfer,
    Reassignment,
    SegmentAge,
    SegmentSize,
    Topics,
)
from .selectors import choose_nodes
from .target import Target

T = TypeVar("T")

_ACCEPTED_S: Final = 10.0
_MOVED_S: Final = 60.0
_POLL_S: Final = 0.1
_ANSWER_S: Final = 5.0


def operator_act(fault: OperatorFault, stage: Stage, random: Random) -> Act:
    match fault:
        case MinIsr(value=value):
            return _ConfigAct(stage, random, "min.insync.replicas", str(value))
        case SegmentSize(size_bytes=size_bytes):
            return _ConfigAct(stage, random, "internal.segment.bytes", str(size_bytes))
        case SegmentAge(age_ms=age_ms):
            return _ConfigAct(stage, random, "segment.ms", str(age_ms))
        case Drain():
            return _DrainAct(stage, random, fault.selector)
        case Topics():
            return _TopicsAct(stage, random, fault.interval_ms)
        case Join():
            return _JoinAct(stage, random)
        case Reassignment() | CancelledReassignment() | PreferredElection() | MovedLeader() | QuorumTransfer():
            return _OnceAct(stage, random, fault)
        case _:
            raise AssertionError(fault)


class _OperatorAct:
    repeat_s: float | None = None

    def __init__(self, stage: Stage, random: Random) -> None:
        self._stage = stage
        self._random = random

    def repeat(self) -> None:
        """Nothing: it is done."""

    def end(self) -> Mapping[str, Any]:
        return {}

    def _ask(self, ask: Callable[[Admin], T], *, timeout_s: float = _ACCEPTED_S) -> T:
        """Its answer, of any node that gives one. Raises NotTakenHoldError with the last refusal."""
        answers: list[T] = []
        refusals = ["no node runs"]

        def is_answered() -> bool:
            urls = self._stage.target.admins()
            if urls:
                try:
                    with Admin(urls, timeout_s=_ANSWER_S) as admin:
                        answers.append(ask(admin))
                except (AdminError, _NotYetError) as error:
                    refusals.append(str(error))
            return bool(answers)

        clock.wait_until(is_answered, timeout_s=timeout_s, interval_s=_POLL_S)
        if not answers:
            raise NotTakenHoldError(refusals[-1])
        return answers[0]

    def _topic(self) -> str:
        topics = sorted(self._stage.target.topics())
        if not topics:
            raise NotTakenHoldError("no topic is under load")
        return self._random.choice(topics)

    def _partition(self, admin: Admin, topic: str) -> PartitionOverview:
        return self._random.choice(partitions_of(admin, topic))


class _NotYetError(Exception):
    """What was asked for is not so yet."""


class _OnceAct(_OperatorAct):
    """Asked for once; whether it is done by the end is told."""

    def __init__(self, stage: Stage, random: Random, fault: OperatorFault) -> None:
        super().__init__(stage, random)
        self._fault = fault
        # What is drawn is drawn once, however often it has to be asked for.
        self._place: tuple[str, int] | None = None
        self._replicas: list[int] = []

    def begin(self) -> Mapping[str, Any]:
        match self._fault:
            case PreferredElection():
                result = self._ask(lambda admin: admin.elect_leaders(ElectionRequest()))
                return {"elected": result.elected_count}
            case QuorumTransfer():
                return {"controller": self._ask(lambda admin: admin.transfer_quorum()).leader_id}
            case MovedLeader():
                return self._ask(self._move_leader)
            case _:
                return self._ask(self._reassign)

    def _reassign(self, admin: Admin) -> Mapping[str, Any]:
        topic, partition = self._drawn(admin)
        if not self._replicas:
            nodes = self._stage.target.view(with_leaders=False).nodes
            orders = [self._random.sample(nodes, len(partition.replicas)) for _ in range(10)]
            self._replicas = next((one for one in orders if one != partition.replicas), orders[0])
        _begin(admin, topic, partition.partition, self._replicas)
        value = {"topic": topic, "partition": partition.partition, "replicas": self._replicas}
        if isinstance(self._fault, CancelledReassignment):
            name = PartitionName(topic=topic, partition=partition.partition)
            value["cancelled"] = admin.cancel_reassignments(CancelRequest(partitions=[name])).cancelled_count
        return value

    def _move_leader(self, admin: Admin) -> Mapping[str, Any]:
        topic, partition = self._drawn(admin)
        # Another fault may have one down. What is drawn is kept as long as it can lead: what was asked for may be done.
        others = [one for one in partition.replicas if one != partition.leader and one in partition.isr]
        if not {*self._replicas[:1]} & {*others, partition.leader}:
            self._replicas = []
        if not self._replicas and others:
            leader = self._random.choice(others)
            self._replicas = [leader, *(one for one in partition.replicas if one != leader)]
        value = {"topic": topic, "partition": partition.partition, "leader": self._replicas[:1]}
        if self._replicas[:1] == [partition.leader]:
            return value
        if not self._replicas:
            raise _NotYetError(f"{topic}-{partition.partition} has no replica that could lead instead")
        if partition.replicas != self._replicas:
            _begin(admin, topic, partition.partition, self._replicas)
        name = PartitionName(topic=topic, partition=partition.partition)
        outcome = admin.elect_leaders(ElectionRequest(partitions=[name]))
        if outcome.failed_count:
            raise _NotYetError(f"{topic}-{partition.partition}: {outcome.results[0].error}")
        return value

    def _drawn(self, admin: Admin) -> tuple[str, PartitionOverview]:
        """A topic and one of its partitions as it is now."""
        if self._place is None:
            topic = self._topic()
            self._place = topic, self._partition(admin, topic).partition
        topic, index = self._place
        return topic, next(one for one in partitions_of(admin, topic) if one.partition == index)


class _ConfigAct(_OperatorAct):
    def __init__(self, stage: Stage, random: Random, key: str, value: str) -> None:
        super().__init__(stage, random)
        self._key = key
        self._value = value
        self._topic_name = ""
        self._before: str | None = None

    def begin(self) -> Mapping[str, Any]:
        self._topic_name = topic = self._topic()
        self._before = self._ask(lambda admin: _own_value(admin, topic, self._key))
        self._ask(lambda admin: admin.alter_configs("topic", topic, ConfigChanges(set={self._key: self._value})))
        return {"topic": topic, "key": self._key, "value": self._value}

    def end(self) -> Mapping[str, Any]:
        if not self._topic_name:
            return {}
        before = self._before
        changes = ConfigChanges(unset=[self._key]) if before is None else ConfigChanges(set={self._key: before})
        self._ask(lambda admin: admin.alter_configs("topic", self._topic_name, changes))
        return {"topic": self._topic_name, "key": self._key, "value": before}


class _DrainAct(_OperatorAct):
    def __init__(self, stage: Stage, random: Random, selector: str) -> None:
        super().__init__(stage, random)
        self._selector = selector
        self._nodes: tuple[int, ...] = ()

    def begin(self) -> Mapping[str, Any]:
        self._nodes = self._stage.choose(self._selector, choose_nodes, self._random)
        for node in self._nodes:
            self._ask(lambda admin, node=node: admin.drain_broker(node))  # type: ignore[misc]
        return {"nodes": list(self._nodes)}

    def end(self) -> Mapping[str, Any]:
        for node in self._nodes:
            self._ask(lambda admin, node=node: admin.undrain_broker(node), timeout_s=_MOVED_S)  # type: ignore[misc]
        return {"nodes": list(self._nodes)}


class _TopicsAct(_OperatorAct):
    """Topics of its own, of which one at a time exists."""

    def __init__(self, stage: Stage, random: Random, interval_ms: int) -> None:
        super().__init__(stage, random)
        self.repeat_s = interval_ms / 1000
        self._prefix = f"nemesis-{random.randrange(10**6)}"
        self._count = 0

    def begin(self) -> Mapping[str, Any]:
        self._ask(self._create)
        return {"topic": self._name}

    def repeat(self) -> None:
        try:
            self._ask(self._delete, timeout_s=1.0)
            self._count += 1
            self._ask(self._create, timeout_s=1.0)
        except NotTakenHoldError:
            # It is tried again, or the end of the fault tells.
            return

    def end(self) -> Mapping[str, Any]:
        self._ask(self._delete)
        return {"count": self._count + 1}

    @property
    def _name(self) -> str:
        return f"{self._prefix}-{self._count}"

    def _create(self, admin: Admin) -> None:
        if not self._exists(admin):
            admin.create_topic(CreateTopic(topic_name=self._name, partitions_count=3))

    def _delete(self, admin: Admin) -> None:
        if self._exists(admin):
            admin.delete_topic(self._name)

    def _exists(self, admin: Admin) -> bool:
        return any(topic.topic_name == self._name for topic in admin.list_topics().data)


def write_metadata(target: Target, name: str) -> None:
    """Let every node write and sync some: a topic with replicas on all of them comes and goes. As far as that works."""
    nodes = list(target.view(with_leaders=False).nodes)
    try:
        with Admin(target.admins(), timeout_s=_ANSWER_S) as admin:
            admin.create_topic(CreateTopic(topic_name=name, replicas_assignments={0: nodes}))
            admin.delete_topic(name)
    except AdminError:
        return


class _JoinAct(_OperatorAct):
    def __init__(self, stage: Stage, random: Random) -> None:
        super().__init__(stage, random)
        self._node: int | None = None

    def begin(self) -> Mapping[str, Any]:
        self._node = node = self._stage.target.join()
        moved = []
        for topic in sorted(self._stage.target.topics()):
            partition = self._ask(lambda admin, topic=topic: self._partition(admin, topic))  # type: ignore[misc]
            replicas = [node, *(one for one in partition.replicas[1:] if one != node)]
            self._ask(lambda admin, t=topic, p=partition, r=replicas: _begin(admin, t, p.partition, r))  # type: ignore[misc]
            moved.append(f"{topic}-{partition.partition}")
        return {"nodes": [node], "moved": moved}

    def end(self) -> Mapping[str, Any]:
        node = self._node
        if node is None:
            return {}

        def leave(admin: Admin) -> None:
            left = admin.decommission_broker(node)
            if left.replica_count:
                raise _NotYetError(f"node {node} still has {left.replica_count} replicas")

        self._ask(leave, timeout_s=_MOVED_S)
        self._stage.target.leave(node)
        return {"nodes": [node]}


def partitions_of(admin: Admin, topic: str) -> list[PartitionOverview]:
    """Raises AdminError, ClusterError for a topic that is not there."""
    told = admin.list_topic_overviews(topic=topic, offsets=False)
    partitions = [one for topics in told.topics for one in topics.partitions or ()]
    if not partitions:
        raise ClusterError(f"there is no topic {topic}")
    return partitions


def _begin(admin: Admin, topic: str, partition: int, replicas: list[int]) -> None:
    plan = [Assignment(topic=topic, partition=partition, replicas=replicas)]
    result = admin.reassign(ReassignmentRequest(plan=plan))
    if result.results:
        raise _NotYetError(f"{topic}-{partition}: {result.results[0].error}")


def _own_value(admin: Admin, topic: str, key: str) -> str | None:
    """The value that the topic itself has; None where it has another's."""
    told = admin.describe_configs("topic", topic, keys=key, documentation=False).configs
    return next((one.value for one in told if one.name == key and one.source == "DYNAMIC_TOPIC_CONFIG"), None)
