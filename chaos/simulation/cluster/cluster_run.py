"""One run of the cluster from one seed: faults under load, then a healed cluster in which all must come right."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any, NamedTuple

from ...checkers.records import judge
from .ambushes import Ambushes
from .clients import Consumer, History, Producer, create_topic, read_all
from .cluster_faults import ClusterFaults
from .consumer_members import ConsumerMember, Leadership
from .deleter import Deleter
from .group_members import GroupHistory, GroupMember
from .loop import new_loop
from .machine import BROKER_PORT, Machine, host_of
from .network import Network
from .process import Process, current_process
from .replica_judge import ReplicaJudge
from .transactional_load import SETTINGS as TRANSACTION_SETTINGS
from .transactional_load import TRANSACTIONS_TOPIC, TransactionalLoad
from .world import World

TOPIC = "simulated"
OFFSETS_TOPIC = "__consumer_offsets"

# In seconds of the simulation.
_START_S = 60.0
_HEALED_S = 90.0
_STEP_S = 0.1
# Of all runs, those with transactional clients.
_TRANSACTIONS_SHARE = 1 / 3


@dataclass(slots=True, kw_only=True)
class ClusterRun:
    """What a run came to."""

    seed: int
    violations: list[str]
    is_live: bool
    virtual_s: float
    acknowledged_count: int
    deleted_count: int
    read_count: int
    leader_epoch_count: int
    check_count: int
    turn_count: int
    faults: Counter[str]
    client_errors: Counter[str]
    commit_count: int
    """Offsets that members of a group were told to be committed."""
    transaction_count: int
    """Transactions of which clients were told that they are committed."""
    trace_hash: str

    @property
    def is_clean(self) -> bool:
        return self.is_live and not self.violations


def run_cluster(
    world: World,
    seed: int,
    *,
    node_count: int = 3,
    member_count: int | None = None,
    has_transactions: bool | None = None,
    faults_s: float = 20.0,
    trace: Callable[[str], None] | None = None,
) -> ClusterRun:
    """Run and judge; groups have `member_count` members, or as many as the seed says, and so with transactions.

    The same arguments give the same run, byte by byte.
    """
    world.seed(seed)
    member_counts = _member_counts(seed) if member_count is None else _MemberCounts(member_count, member_count)
    if has_transactions is None:
        has_transactions = Random(f"transactions {seed}").random() < _TRANSACTIONS_SHARE
    return _Simulation(world, seed, node_count, member_counts, has_transactions, trace).run(faults_s)


class _MemberCounts(NamedTuple):
    """Of a group of the classic protocol, and of one of the consumer protocol."""

    classic: int
    consumer: int


def _member_counts(seed: int) -> _MemberCounts:
    """By a generator of its own: a run without groups is the same, whoever decides that there are none."""
    return Random(f"members {seed}").choice(
        (_MemberCounts(0, 0), _MemberCounts(2, 0), _MemberCounts(0, 3), _MemberCounts(2, 3))
    )


class _Simulation:
    def __init__(
        self, world: World, seed: int, node_count: int, member_counts: _MemberCounts, has_transactions: bool,
        trace: Callable[[str], None] | None,
    ) -> None:  # fmt: skip
        self._seed = seed
        self._member_counts = member_counts
        self._has_transactions = has_transactions
        self._consumer_session_ms = Random(f"session {seed}").choice((2_000, 6_000))
        self._random = random = Random(seed)
        self._hash = sha256()
        self._write_line = trace
        self._loop = loop = new_loop(Random(random.getrandbits(64)))
        world.loop_s = loop.time
        self._network = loop.network = Network(loop, Random(random.getrandbits(64)), self._trace)
        self._violations: list[str] = []
        # Only what is synced is acknowledged, or else no more replicas lose power than may.
        self._is_flushed = node_count == 1 or random.random() < 0.5
        self._request_timeout_ms = random.choice((3_000, 10_000))
        ids = tuple(range(1, node_count + 1))
        settings = self._settings()
        self._machines = {
            node_id: Machine(
                node_id, ids, settings, loop=loop, network=self._network, wall_clock_ms=world.wall_clock_ms,
                random=Random(random.getrandbits(64)), trace=self._trace, on_failure=self._on_failure,
            )
            for node_id in ids
        }  # fmt: skip
        self._judge = ReplicaJudge(self._machines.values(), self._deletable_end)
        self._bootstrap = [f"{host_of(node_id)}:{BROKER_PORT}" for node_id in ids]
        self._history = History(TOPIC, random.choice((1, 2, 3)), self._judge.committed_end)
        self._groups = [GroupHistory(name, TOPIC, self._history.partition_count) for name in ("group", "consumers")]
        self._members: list[GroupMember | ConsumerMember] = []
        self._replication_factor = node_count
        # Some topics delete what is old by themselves; in most a client asks for it now and then.
        self._has_retention = random.random() < 0.2
        self._deleter: Deleter | None = None
        self._load: TransactionalLoad | None = None
        if has_transactions:
            self._load = TransactionalLoad(
                seed, self._bootstrap, loop=loop, request_timeout_ms=self._request_timeout_ms,
                group_coordinator=self._group_coordinator, leader=self._leader_of, trace=self._trace,
            )  # fmt: skip
        self._operator = Process("operator", "10.0.3.1")
        loop.after_turn = self._judge.look
        loop.on_exception = self._on_exception

    @property
    def _has_groups(self) -> bool:
        return any(self._member_counts)

    def _settings(self) -> dict[str, str]:
        random = self._random
        session_ms = random.choice((1_500, 1_500, 3_000, 9_000))
        groups = {}
        if self._has_groups:
            groups = {
                "offsets.topic.num.partitions": "1",
                "group.min.session.timeout.ms": "1000",
                "group.consumer.min.session.timeout.ms": "1000",
                "group.consumer.session.timeout.ms": str(self._consumer_session_ms),
                "group.consumer.min.heartbeat.interval.ms": "100",
                "group.consumer.heartbeat.interval.ms": "500",
                "group.initial.rebalance.delay.ms": str(random.choice((0, 500))),
            }
        if self._has_transactions:
            groups |= TRANSACTION_SETTINGS
        if groups and self._is_flushed:
            groups["log.flush.interval.messages"] = "1"
        return {
            **groups,
            "broker.session.timeout.ms": str(session_ms),
            "broker.heartbeat.interval.ms": str(session_ms // 4),
            "replica.lag.time.max.ms": str(random.choice((1_000, 3_000, 10_000))),
            "replica.high.watermark.checkpoint.interval.ms": str(random.choice((500, 5_000))),
            "log.flush.offset.checkpoint.interval.ms": str(random.choice((1_000, 60_000))),
            "log.initial.task.delay.ms": "500",
            "log.retention.check.interval.ms": "2000",
            "metadata.log.max.record.bytes.between.snapshots": str(random.choice((2_000, 20_971_520))),
        }

    def _trace(self, line: str) -> None:
        line = f"{self._loop.time():.6f} {line}"
        self._hash.update(line.encode() + b"\n")
        if self._write_line is not None:
            self._write_line(line)

    # The run.

    def run(self, faults_s: float) -> ClusterRun:
        handler = _TraceLog(self._trace)
        logger = logging.getLogger()
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING)
        logging.getLogger("penstock").setLevel(logging.INFO)
        try:
            is_live, faults = self._play(faults_s)
        finally:
            logger.removeHandler(handler)
        return ClusterRun(
            seed=self._seed,
            violations=self._all_violations(),
            is_live=is_live,
            virtual_s=self._loop.time(),
            acknowledged_count=self._history.acknowledged_count,
            deleted_count=sum(self._judge.log_start(TOPIC, index) for index in range(self._history.partition_count)),
            read_count=self._history.read_count,
            leader_epoch_count=self._judge.leader_epoch_count,
            check_count=self._judge.check_count,
            turn_count=self._loop.turn_count,
            faults=faults,
            client_errors=sum((group.errors for group in self._groups), self._history.errors),
            commit_count=sum(group.commit_count for group in self._groups),
            transaction_count=0 if self._load is None else self._load.history.commit_count,
            trace_hash=self._hash.hexdigest(),
        )

    def _play(self, faults_s: float) -> tuple[bool, Counter[str]]:
        for machine in self._machines.values():
            machine.start()
        configs = self._topic_configs()
        topics = {TOPIC: self._history.partition_count}
        if self._load is not None:
            topics |= self._load.topics
        for topic, partition_count in topics.items():
            creating = self._operate(
                create_topic(
                    self._bootstrap, topic, partitions=partition_count,
                    replication_factor=self._replication_factor,
                    configs=configs if topic == TOPIC else _without_deletion(configs),
                )
            )  # fmt: skip
            if not self._wait(creating.done, _START_S):
                return False, Counter()
            creating.result()
        producers, consumers = self._start_clients()
        clients = [one.process for one in (*producers, *consumers, *self._members, self._deleter) if one is not None]
        clients += [] if self._load is None else self._load.processes
        faults = ClusterFaults(
            self._machines, clients,
            loop=self._loop, network=self._network, random=Random(self._random.getrandbits(64)), trace=self._trace,
            is_whole=self._is_whole, is_flushed=self._is_flushed,
            is_replicated=self._replication_factor > 1, counts=self._counts, may_count=self._may_count,
            leaders=self._leaders,
        )  # fmt: skip
        ambushes = Ambushes(
            faults, self._machines,
            loop=self._loop, network=self._network, random=Random(self._random.getrandbits(64)),
        )  # fmt: skip

        def after_turn(turn: int) -> None:
            self._judge.look(turn)
            faults.after_turn()

        self._loop.after_turn = after_turn
        ambushes.begin()
        end_s = self._loop.time() + faults_s
        while self._loop.time() < end_s and not self._all_violations():
            self._loop.run_for(self._random.uniform(0, 2 * _STEP_S))
            if not ambushes.is_alone:
                faults.step()
        ambushes.end()
        faults.heal_all()
        before = [producer.acknowledged_count for producer in producers]
        transactions_before = [] if self._load is None else self._load.commit_counts()
        is_live = not self._all_violations() and self._wait(
            lambda: (
                self._is_whole()
                and all(
                    producer.acknowledged_count > count + 3 for producer, count in zip(producers, before, strict=True)
                )
                and (self._load is None or _all_above(self._load.commit_counts(), transactions_before))
            ),
            _HEALED_S,
            each_step=faults.keep_up,
        )
        for client in (*producers, self._deleter):
            if client is not None:
                client.is_stopping = True
        is_live = is_live and self._wait(lambda: all(producer.is_done for producer in producers), _HEALED_S)
        is_live = is_live and self._read_back(consumers) and self._read_by_groups()
        return is_live and self._finish_transactions(), faults.counts

    def _topic_configs(self) -> dict[str, str]:
        configs = {
            "min.insync.replicas": str(self._random.choice((1, 2, 2))),
            "internal.segment.bytes": str(self._random.choice((2_000, 10_000, 1_000_000))),
            "file.delete.delay.ms": str(self._random.choice((0, 1_000))),
        }
        if self._has_retention:
            configs["retention.bytes"] = "10000"
        if self._is_flushed:
            configs["flush.messages"] = "1"
        return configs

    def _start_clients(self) -> tuple[list[Producer], list[Consumer]]:
        producers = [
            Producer(
                name, self._bootstrap, self._history, is_idempotent=is_idempotent, loop=self._loop,
                random=Random(self._random.getrandbits(64)), request_timeout_ms=self._request_timeout_ms,
                trace=self._trace,
            )
            for name, is_idempotent in (("idempotent1", True), ("plain2", False))
        ]  # fmt: skip
        consumers = [
            Consumer(
                f"consumer{number}", self._bootstrap, self._history,
                loop=self._loop, random=Random(self._random.getrandbits(64)),
            )
            for number in (1, 2)
        ]  # fmt: skip
        if not self._has_retention and self._random.random() < 0.7:
            self._deleter = Deleter(
                "deleter", self._bootstrap, self._history,
                loop=self._loop, random=Random(self._random.getrandbits(64)),
            )  # fmt: skip
            self._deleter.start()
        of_classic, of_consumer = self._groups
        self._members = [
            *(
                GroupMember(
                    f"member{number}", self._bootstrap, of_classic,
                    loop=self._loop, random=Random(self._random.getrandbits(64)), trace=self._trace,
                )
                for number in range(1, self._member_counts.classic + 1)
            ),
            *(
                ConsumerMember(
                    f"consumer-member{number}", self._bootstrap, of_consumer,
                    coordinator=self._group_coordinator,
                    committed_end=lambda partition: self._judge.committed_end(TOPIC, partition),
                    session_s=self._consumer_session_ms / 1000,
                    loop=self._loop, random=Random(self._random.getrandbits(64)), trace=self._trace,
                )
                for number in range(1, self._member_counts.consumer + 1)
            ),
        ]  # fmt: skip
        for producer in producers:
            producer.start()
        if self._load is not None:
            self._load.start()
        for member in self._members:
            member.start()
        for consumer in consumers:
            consumer.start()
        return producers, consumers

    def _read_back(self, consumers: list[Consumer]) -> bool:
        history = self._history
        for partition in range(history.partition_count):
            reading = self._operate(read_all(self._bootstrap, TOPIC, partition))
            if not self._wait(reading.done, _HEALED_S):
                return False
            # Where the log begins may have changed while it was read.
            start = self._judge.log_start(TOPIC, partition)
            stored = [one for one in reading.result() if one.offset >= start]
            sent = [
                one
                for (_, place), some in history.sent.items()
                if place == partition
                for one in some
                if one.offset is None or one.offset >= start
            ]
            plain = {one.producer for one in sent if one.producer.startswith("plain")}
            for record in stored:
                history.on_read("the last reader", partition, record.offset, record.value)
            promised = [one for one in sent if one.producer not in plain]
            rest = [one for one in sent if one.producer in plain]
            for finding in (*judge(sent, stored, is_idempotent=False), *_strict(promised, rest, stored)):
                self._violations.append(f"partition {partition}: {finding}")
            end = stored[-1].offset + 1 if stored else 0
            if not self._wait(lambda end=end, at=partition: all(c.positions[at] >= end for c in consumers), _HEALED_S):  # type: ignore[misc]
                return False
        return True

    def _read_by_groups(self) -> bool:
        """Until they have committed all that there is."""
        ends = [self._judge.committed_end(TOPIC, index) for index in range(self._history.partition_count)]
        groups = [group for group, count in zip(self._groups, self._member_counts, strict=True) if count]
        is_live = self._wait(
            lambda: all(
                register.last_told == end or end == self._judge.log_start(TOPIC, index)
                for group in groups
                for index, (register, end) in enumerate(zip(group.offsets, ends, strict=True))
            ),
            _HEALED_S,
        )
        for member in self._members:
            member.is_stopping = True
        return is_live and self._wait(lambda: all(member.is_done for member in self._members), _HEALED_S)

    def _finish_transactions(self) -> bool:
        if self._load is None:
            return True
        finishing = self._operate(self._load.finish())
        is_live = self._wait(finishing.done, 2 * _HEALED_S)
        if is_live:
            self._violations += finishing.result()
        return is_live

    def _operate(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = self._operator.run(lambda: self._loop.create_task(work))
        return task

    def _wait(self, is_done: Callable[[], bool], timeout_s: float, each_step: Callable[[], None] | None = None) -> bool:
        end_s = self._loop.time() + timeout_s
        while not is_done():
            if self._loop.time() > end_s or self._all_violations():
                return False
            if each_step is not None:
                each_step()
            self._loop.run_for(_STEP_S)
        return True

    # What is asked of the cluster's state.

    def _registrations(self) -> list[Any]:
        return [self._judge.registration(topic, index) for topic, index in self._places()]

    def _places(self) -> list[tuple[str, int]]:
        """The partitions that faults and judge look at."""
        places = [(TOPIC, index) for index in range(self._history.partition_count)]
        if self._load is not None:
            places += [(topic, index) for topic, count in self._load.topics.items() for index in range(count)]
            places.append((TRANSACTIONS_TOPIC, 0))
        if self._has_groups or (self._load is not None and self._load.history.outputs):
            places.append((OFFSETS_TOPIC, 0))
        return places

    def _is_whole(self) -> bool:
        """Every node runs, and each partition's ISR has all of its replicas: topics differ in their factors."""
        return all(machine.is_ready and not machine.is_stopping for machine in self._machines.values()) and all(
            one is not None and one.leader >= 0 and set(one.isr) == set(one.replicas) for one in self._registrations()
        )

    def _counts(self, node_id: int) -> bool:
        return any(
            one is None or node_id in (one.leader, *one.isr, *one.elr, *one.last_known_elr)
            for one in self._registrations()
        )

    def _may_count(self, node_id: int) -> bool:
        return self._counts(node_id) or any(
            self._judge.is_awaited(topic, index, node_id) for topic, index in self._places()
        )

    def _deletable_end(self, topic: str, index: int) -> int | None:
        if self._load is not None and topic in self._load.topics:
            return 0
        if topic != TOPIC or self._has_retention:
            return None
        return 0 if self._deleter is None else self._deleter.asked_ends[index]

    def _leaders(self) -> list[int]:
        return sorted({one.leader for one in self._registrations() if one is not None and one.leader >= 0})

    def _group_coordinator(self) -> Leadership | None:
        registration = self._judge.registration(OFFSETS_TOPIC, 0)
        return None if registration is None else Leadership(registration.leader, registration.leader_epoch)

    def _leader_of(self, place: tuple[str, int]) -> int | None:
        registration = self._judge.registration(*place)
        return None if registration is None else registration.leader

    def _all_violations(self) -> list[str]:
        of_groups = [violation for group in self._groups for violation in group.violations]
        return [*self._judge.violations, *self._history.violations, *of_groups, *self._violations]

    def _on_failure(self, machine: Machine, reason: str) -> None:
        if not machine.is_failure_expected:
            self._violations.append(f"node {machine.node_id} failed: {reason}")

    def _on_exception(self, context: dict[str, Any]) -> None:
        process = current_process()
        error = context.get("exception")
        sentence = f"{process}: {context.get('message')}: {type(error).__name__}: {error}"
        self._trace(f"exception {_without_addresses(sentence)}")
        if process is not None and process.name.startswith("node-"):
            self._violations.append(f"an exception that nobody took: {_without_addresses(sentence)}")


def _strict(promised: list[Any], rest: list[Any], stored: list[Any]) -> list[Any]:
    """What idempotent producers are promised beyond the others."""
    values = {one.value for one in rest}
    return [
        finding
        for finding in judge(promised, [one for one in stored if one.value not in values])
        if finding.anomaly.name in ("DUPLICATED", "REORDERED")
    ]


def _without_deletion(configs: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if name != "retention.bytes"}


def _all_above(counts: list[int], before: list[int]) -> bool:
    return all(count > old for count, old in zip(counts, before, strict=True))


def _without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x…", text)


class _TraceLog(logging.Handler):
    def __init__(self, trace: Callable[[str], None]) -> None:
        super().__init__()
        self._write = trace

    def emit(self, record: logging.LogRecord) -> None:
        process = current_process()
        if process is None or not process.is_dead:
            text = _without_addresses(record.getMessage())
            self._write(f"log {process} {record.levelname} {text}")
            if record.exc_info is not None and record.exc_info[1] is not None:
                self._write(f"log {process} {type(record.exc_info[1]).__name__}: {record.exc_info[1]}")
