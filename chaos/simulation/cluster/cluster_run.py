"""One run of the cluster from one seed: faults under load, then a healed cluster in which all must come right."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from random import Random
from typing import Any

from ...checkers.records import judge
from .ambushes import Ambushes
from .clients import Consumer, History, Producer, create_topic, read_all
from .cluster_faults import ClusterFaults
from .cluster_operator import Operator
from .cluster_result import ClusterRun
from .consumer_members import ConsumerMember, Leadership
from .delays import Delays
from .deleter import Deleter
from .fencing_watch import FencingWatch
from .file_judge import FileJudge
from .group_members import GroupHistory, GroupMember
from .loop import new_loop
from .machine import BROKER_PORT, Machine, host_of
from .network import Network
from .pipelining_producer import PipeliningProducer
from .process import Process, current_process
from .replica_judge import ReplicaJudge
from .shapes import Choices, Shape, shape_of
from .trace_log import TraceLog, without_addresses
from .transactional_load import SETTINGS as TRANSACTION_SETTINGS
from .transactional_load import TRANSACTIONS_TOPIC, TransactionalLoad
from .world import START_MS, World
from .zombies import Zombies

TOPIC = "simulated"
OFFSETS_TOPIC = "__consumer_offsets"

# In seconds of the simulation.
_START_S = 60.0
_HEALED_S = 90.0
_STEP_S = 0.1
# Of all runs, those with a producer that has several batches in flight.
_PIPELINING_SHARE = 0.5


def run_cluster(
    world: World, seed: int, choices: Choices, *, trace: Callable[[str], None] | None = None
) -> ClusterRun:  # fmt: skip
    """Run and judge what `choices` and, for the rest, the seed make of it.

    The same arguments give the same run, byte by byte.
    """
    world.seed(seed)
    return _Simulation(world, seed, shape_of(seed, choices), trace).run()


class _Simulation:
    def __init__(self, world: World, seed: int, shape: Shape, trace: Callable[[str], None] | None) -> None:
        self._seed = seed
        self._shape = shape
        self._consumer_session_ms = Random(f"session {seed}").choice((2_000, 6_000))
        self._random = random = Random(seed)
        self._hash = sha256()
        self._write_line = trace
        self._loop = loop = new_loop(Random(random.getrandbits(64)))
        world.loop_s = loop.time
        self._network = loop.network = Network(loop, Random(random.getrandbits(64)), self._trace)
        self._violations: list[str] = []
        # Only what is synced is acknowledged, or else no more replicas lose power than may.
        self._is_flushed = len(shape.node_ids) == 1 or random.random() < 0.5
        self._request_timeout_ms = random.choice((3_000, 10_000))
        self._session_ms = random.choice((1_500, 1_500, 3_000, 9_000))
        self._watch: FencingWatch | None = None
        ids = shape.node_ids
        settings = self._settings()
        self._machines = {
            node_id: Machine(
                node_id, shape.voter_ids, settings, directory_count=shape.directory_count,
                loop=loop, network=self._network, wall_clock_ms=world.wall_clock_ms,
                random=Random(random.getrandbits(64)), trace=self._trace, on_failure=self._on_failure,
            )
            for node_id in ids
        }  # fmt: skip
        self._judge = ReplicaJudge(self._machines.values(), self._deletable_end, is_flushed=self._is_flushed)
        self._bootstrap = [f"{host_of(node_id)}:{BROKER_PORT}" for node_id in ids]
        self._history = History(TOPIC, random.choice((1, 2, 3)), self._judge.committed_end)
        self._files = FileJudge(self._machines.values(), self._judge, self._history)
        self._zombies = Zombies(
            self._bootstrap, leader=self._leader_of, random=Random(f"zombies {seed}"), profile=shape.profile,
            now_ms=lambda: START_MS + int(loop.time() * 1000), trace=self._trace,
        )  # fmt: skip
        self._groups = [GroupHistory(name, TOPIC, self._history.partition_count) for name in ("group", "consumers")]
        self._members: list[GroupMember | ConsumerMember] = []
        # Some topics delete what is old by themselves; in most a client asks for it now and then.
        self._has_retention = random.random() < 0.2
        self._deleter: Deleter | None = None
        self._load: TransactionalLoad | None = None
        if shape.has_transactions:
            self._load = TransactionalLoad(
                seed, self._bootstrap, loop=loop, request_timeout_ms=self._request_timeout_ms,
                group_coordinator=self._group_coordinator, leader=self._leader_of, zombies=self._zombies,
                trace=self._trace,
            )  # fmt: skip
        self._operator: Operator | None = None
        self._faults: ClusterFaults | None = None
        if self._load is not None:
            self._files.transactions = self._load.history
        self._is_over = False
        self._observer = Process("observer", "10.0.3.1")
        self._log = TraceLog(self._trace)
        loop.after_turn = self._judge.look
        loop.on_exception = self._on_exception

    def _settings(self) -> dict[str, str]:
        random = self._random
        session_ms = self._session_ms
        groups = {}
        if self._shape.has_groups:
            groups = {
                "offsets.topic.num.partitions": "1",
                "group.min.session.timeout.ms": "1000",
                "group.consumer.min.session.timeout.ms": "1000",
                "group.consumer.session.timeout.ms": str(self._consumer_session_ms),
                "group.consumer.min.heartbeat.interval.ms": "100",
                "group.consumer.heartbeat.interval.ms": "500",
                "group.initial.rebalance.delay.ms": str(random.choice((0, 500))),
            }
        if self._shape.has_transactions:
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

    def run(self) -> ClusterRun:
        handler = self._log
        logger = logging.getLogger()
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING)
        logging.getLogger("penstock").setLevel(logging.INFO)
        try:
            is_live, faults = self._play()
        finally:
            logger.removeHandler(handler)
        return ClusterRun(
            seed=self._seed,
            shape=self._shape.options,
            violations=self._all_violations(),
            is_live=is_live,
            virtual_s=self._loop.time(),
            acknowledged_count=self._history.acknowledged_count,
            deleted_count=sum(
                self._judge.highest_log_start(TOPIC, index) for index in range(self._history.partition_count)
            ),
            read_count=self._history.read_count,
            leader_epoch_count=self._judge.leader_epoch_count,
            check_count=self._judge.check_count,
            turn_count=self._loop.turn_count,
            faults=faults,
            operations=self._operation_counts(),
            zombies=self._zombies.counts,
            client_errors=sum((group.errors for group in self._groups), self._history.errors),
            commit_count=sum(group.commit_count for group in self._groups),
            transaction_count=0 if self._load is None else self._load.history.commit_count,
            fenced_count=0 if self._watch is None else self._watch.count,
            file_check_count=self._files.check_count,
            trace_hash=self._hash.hexdigest(),
        )

    def _operation_counts(self) -> Counter[str]:
        return sum(
            (
                *(() if self._deleter is None else (self._deleter.counts,)),
                *(() if self._operator is None else (self._operator.counts,)),
                *(() if self._load is None else (self._load.history.operations,)),
            ),
            Counter[str](),
        )

    def _play(self) -> tuple[bool, Counter[str]]:
        for machine in self._machines.values():
            machine.start()
        configs = self._topic_configs()
        topics = {TOPIC: self._history.partition_count}
        if self._load is not None:
            topics |= self._load.topics
        for topic, partition_count in topics.items():
            creating = self._observe(
                create_topic(
                    self._bootstrap, topic, partitions=partition_count,
                    replication_factor=self._shape.replication_factor,
                    configs=configs if topic == TOPIC else _without_deletion(configs),
                )
            )  # fmt: skip
            if not self._wait(creating.done, _START_S):
                return False, Counter()
            creating.result()
        producers, consumers = self._start_clients()
        operator = self._operator = self._start_operator(configs)
        clients = [one.process for one in (*producers, *consumers, *self._members, self._deleter) if one is not None]
        clients += [] if self._load is None else self._load.processes
        clients += [operator.process] if operator.is_busy else []
        faults = self._faults = ClusterFaults(
            self._machines, clients,
            loop=self._loop, network=self._network, random=Random(self._random.getrandbits(64)), trace=self._trace,
            is_whole=self._is_whole, is_in_sync=self._is_in_sync, is_flushed=self._is_flushed,
            is_replicated=self._shape.replication_factor > 1, counts=self._counts, may_count=self._may_count,
            leaders=self._leaders, profile=self._shape.profile,
            active_controller=lambda: self._log.active_controller, on_crash_of_all=self._on_crash_of_all,
            has_offline_directory=lambda process: process.name in self._log.directory_losers,
        )  # fmt: skip
        ambushes = Ambushes(
            faults, self._machines,
            loop=self._loop, network=self._network, random=Random(self._random.getrandbits(64)),
        )  # fmt: skip
        delays = Delays(faults, self._machines, network=self._network, random=Random(f"delays {self._seed}"))

        def after_turn(turn: int) -> None:
            self._judge.look(turn)
            faults.after_turn()

        watch = self._watch = FencingWatch(
            self._machines.values(), network=self._network, session_ms=self._session_ms,
            image=lambda: self._judge.image, now_s=self._loop.time, is_held_up=lambda: ambushes.is_under_way,
        )  # fmt: skip
        self._loop.after_turn = after_turn
        ambushes.begin()
        delays.begin()
        end_s = self._loop.time() + self._shape.faults_s
        while self._loop.time() < end_s and not self._all_violations():
            self._loop.run_for(self._random.uniform(0, 2 * _STEP_S))
            watch.look()
            if not ambushes.is_alone:
                faults.step()
                delays.step()
        ambushes.end()
        delays.end()
        faults.heal_all()
        operator.is_stopping = self._zombies.is_over = True
        settling = operator.process.run(lambda: self._loop.create_task(operator.settle()))
        if not self._wait(settling.done, _HEALED_S, each_step=faults.keep_up):
            return False, faults.counts
        before = [producer.acknowledged_count for producer in producers]
        transactions_before = [] if self._load is None else self._load.commit_counts()
        is_live = not self._all_violations() and self._wait(
            lambda: (
                self._is_whole()
                and faults.is_settled
                and all(
                    producer.acknowledged_count > count + 3 for producer, count in zip(producers, before, strict=True)
                )
                and (self._load is None or _all_above(self._load.commit_counts(), transactions_before))
            ),
            _HEALED_S,
            each_step=faults.keep_up,
        )
        if not is_live:
            self._trace(f"not live: {self._what_is_missing()}")
            counts = [producer.acknowledged_count - count for producer, count in zip(producers, before, strict=True)]
            transactions = [] if self._load is None else self._load.commit_counts()
            self._trace(f"not live: acknowledged {counts}, transactions {transactions_before} to {transactions}")
        for client in (*producers, self._deleter):
            if client is not None:
                client.is_stopping = True
        is_live = is_live and self._wait(lambda: all(producer.is_done for producer in producers), _HEALED_S)
        is_live = is_live and self._read_back(consumers) and self._read_by_groups()
        is_live = is_live and self._finish_transactions()
        for machine in self._machines.values():
            lost = [] if machine.process is None else machine.process.lost_exceptions()
            for name, error in lost:
                sentence = without_addresses(f"{machine.process}: {name} ended by {type(error).__name__}: {error}")
                self._violations.append(f"unhandled exception: {sentence}")
        if not is_live:
            for process in clients:
                for name, error in process.lost_exceptions():
                    self._trace(f"not live: {process}: {name} ended by {type(error).__name__}: {error}")
        if is_live and not self._all_violations():
            self._is_over = True
            faults.crash_all()
        return is_live, faults.counts

    def _on_crash_of_all(self) -> None:
        """No process runs: the files are all that there is of the cluster."""
        self._violations += self._files.look(self._places(), is_end=self._is_over)

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

    def _start_clients(self) -> tuple[list[Producer | PipeliningProducer], list[Consumer]]:
        producers: list[Producer | PipeliningProducer] = [
            Producer(
                name, self._bootstrap, self._history, is_idempotent=is_idempotent, loop=self._loop,
                random=Random(self._random.getrandbits(64)), request_timeout_ms=self._request_timeout_ms,
                trace=self._trace,
            )
            for name, is_idempotent in (("idempotent1", True), ("plain2", False))
        ]  # fmt: skip
        pipelining = Random(f"pipelining {self._seed}")
        if pipelining.random() < _PIPELINING_SHARE:
            producers.append(
                PipeliningProducer(
                    "pipelined3", self._bootstrap, self._history, loop=self._loop, random=pipelining,
                    request_timeout_ms=self._request_timeout_ms, leader=self._leader_of,
                    now_ms=lambda: START_MS + int(self._loop.time() * 1000), trace=self._trace,
                )
            )  # fmt: skip
        consumers = [
            Consumer(
                f"consumer{number}", self._bootstrap, self._history,
                loop=self._loop, random=Random(self._random.getrandbits(64)),
            )
            for number in (1, 2)
        ]  # fmt: skip
        if not self._has_retention and self._random.random() < 0.7:
            deleter = Deleter(
                "deleter", self._bootstrap, self._history,
                log_start=lambda partition: self._judge.log_start(TOPIC, partition), profile=self._shape.profile,
                loop=self._loop, random=Random(self._random.getrandbits(64)),
            )  # fmt: skip
            if deleter.is_busy:
                self._deleter = deleter
                deleter.start()
        of_classic, of_consumer = self._groups
        self._members = [
            *(
                GroupMember(
                    f"member{number}", self._bootstrap, of_classic, zombies=self._zombies,
                    loop=self._loop, random=Random(self._random.getrandbits(64)), trace=self._trace,
                )
                for number in range(1, self._shape.member_counts.classic + 1)
            ),
            *(
                ConsumerMember(
                    f"consumer-member{number}", self._bootstrap, of_consumer,
                    coordinator=self._group_coordinator,
                    committed_end=lambda partition: self._judge.committed_end(TOPIC, partition),
                    session_s=self._consumer_session_ms / 1000, zombies=self._zombies,
                    loop=self._loop, random=Random(self._random.getrandbits(64)), trace=self._trace,
                )
                for number in range(1, self._shape.member_counts.consumer + 1)
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

    def _start_operator(self, configs: Mapping[str, str]) -> Operator:
        topics: Counter[str] = Counter(topic for topic, _ in self._places())
        operator = Operator(
            self._shape.node_ids, topics,
            min_isr=configs["min.insync.replicas"],
            has_retention=lambda topic: topic == TOPIC and self._has_retention,
            registration=self._judge.registration, profile=self._shape.profile,
            loop=self._loop, random=Random(f"operator {self._seed}"), trace=self._trace,
        )  # fmt: skip
        operator.start()
        return operator

    def _read_back(self, consumers: list[Consumer]) -> bool:
        history = self._history
        for partition in range(history.partition_count):
            reading = self._observe(read_all(self._bootstrap, TOPIC, partition))
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
        groups = [group for group, count in zip(self._groups, self._shape.member_counts, strict=True) if count]

        def ends() -> list[int]:
            # A producer that did not end when it was told to may write until the last moment.
            return [self._judge.committed_end(TOPIC, index) for index in range(self._history.partition_count)]

        is_live = self._wait(
            lambda: all(
                register.last_told == end or end == self._judge.log_start(TOPIC, index)
                for group in groups
                for index, (register, end) in enumerate(zip(group.offsets, ends(), strict=True))
            ),
            _HEALED_S,
        )
        for member in self._members:
            member.is_stopping = True
        is_live = is_live and self._wait(lambda: all(member.is_done for member in self._members), _HEALED_S)
        if not is_live:
            places = [(group.group, [one.last_told for one in group.offsets]) for group in groups]
            stuck = [str(member.process) for member in self._members if not member.is_done]
            self._trace(f"not live: groups have {places} of {ends()}, and {stuck} did not end")
        return is_live

    def _finish_transactions(self) -> bool:
        if self._load is None:
            return True
        finishing = self._observe(self._load.finish())
        is_live = self._wait(finishing.done, 2 * _HEALED_S)
        if is_live:
            self._violations += finishing.result()
        return is_live

    def _observe(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = self._observer.run(lambda: self._loop.create_task(work))
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
        if self._shape.has_groups or (self._load is not None and self._load.commits_offsets):
            places.append((OFFSETS_TOPIC, 0))
        return places

    def _is_whole(self) -> bool:
        """Every node runs, and each partition's ISR has all of its replicas: topics differ in their factors."""
        return all(machine.is_ready and not machine.is_stopping for machine in self._machines.values()) and all(
            one is not None and one.leader >= 0 and set(one.isr) == set(one.replicas) for one in self._registrations()
        )

    def _is_in_sync(self, node_id: int) -> bool:
        """The node has started, so that it is registered, and every replica of it is in its partition's ISR."""
        machine = self._machines[node_id]
        return (
            machine.is_ready
            and not machine.is_stopping
            and all(
                one is not None and (node_id not in one.replicas or node_id in one.isr) for one in self._registrations()
            )
        )

    def _what_is_missing(self) -> str:
        down = [node_id for node_id, machine in self._machines.items() if not machine.is_ready]
        return f"nodes down: {down}; " + "; ".join(
            f"{topic}-{index} has no metadata"
            if one is None
            else f"{topic}-{index} has leader {one.leader}, replicas {one.replicas}, ISR {one.isr}, ELR {one.elr}, "
            f"last known ELR {one.last_known_elr}, directories {tuple(map(str, one.directories))}"
            for (topic, index), one in zip(self._places(), self._registrations(), strict=True)
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
        return [
            *self._judge.violations, *self._history.violations, *of_groups, *self._zombies.violations,
            *(() if self._watch is None else self._watch.violations),
            *(() if self._load is None else self._load.violations), *self._uncut(), *self._violations,
        ]  # fmt: skip

    def _uncut(self) -> list[str]:
        """Replicas that did not cut their logs where they part from the leader's, though no disk kept them from it."""
        has_disk_faults = self._faults is not None and self._faults.has_disk_faults
        return [] if has_disk_faults else [f"Uncut: {line}" for line in self._log.uncut]

    def _on_failure(self, machine: Machine, reason: str) -> None:
        if not machine.is_failure_expected:
            self._violations.append(f"node {machine.node_id} failed: {reason}")

    def _on_exception(self, context: dict[str, Any]) -> None:
        process = current_process()
        error = context.get("exception")
        sentence = f"{process}: {context.get('message')}: {type(error).__name__}: {error}"
        self._trace(f"exception {without_addresses(sentence)}")
        if process is not None and process.name.startswith("node-"):
            self._violations.append(f"unhandled exception: {without_addresses(sentence)}")


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
