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
from .clients import create_topic, read_all
from .cluster_clients import TOPIC, ClusterClients
from .cluster_faults import ClusterFaults
from .cluster_operator import Operator
from .cluster_result import ClusterRun
from .cluster_settings import DAY_MS, SEGMENT_BYTES, ClusterSettings
from .cluster_state import OFFSETS_TOPIC, ClusterState
from .damage_watch import DamageWatch
from .delays import Delays
from .directory_mover import DirectoryMover
from .drain_watch import DrainWatch, differing_events
from .fencing_watch import FencingWatch
from .file_judge import FileJudge
from .loop import new_loop
from .machine import BROKER_PORT, Machine, host_of
from .network import Network
from .process import Process, current_process
from .replica_judge import ReplicaJudge
from .shapes import Choices, Shape, shape_of
from .simulated_tier import SimulatedTier
from .table_clients import TABLE, read_table
from .trace_log import TraceLog, without_addresses
from .transactional_load import TRANSACTIONS_TOPIC
from .world import World

# In seconds of the simulation.
_START_S = 60.0
_HEALED_S = 90.0
_STEP_S = 0.1
_INTERNAL_SEGMENT_BYTES = "1000"
_COMPACTED = (TABLE, OFFSETS_TOPIC, TRANSACTIONS_TOPIC)


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
        self._random = random = Random(seed)
        self._hash = sha256()
        self._write_line = trace
        self._loop = loop = new_loop(Random(random.getrandbits(64)))
        world.loop_s = loop.time
        self._network = loop.network = Network(loop, Random(random.getrandbits(64)), self._trace)
        self._violations: list[str] = []
        self._settings = settings = ClusterSettings(seed, shape, random)
        self._watch: FencingWatch | None = None
        self._drains = DrainWatch(lambda: self._judge.image)
        self._damage: DamageWatch | None = None
        ids = shape.node_ids
        self._tier = SimulatedTier(Random(f"tier {seed}")) if shape.has_tiers else None
        self._machines = {
            node_id: Machine(
                node_id, shape.voter_ids, settings.of_nodes, directory_count=shape.directory_count,
                loop=loop, network=self._network, wall_clock_ms=world.wall_clock_ms,
                random=Random(random.getrandbits(64)), trace=self._trace, on_failure=self._on_failure, tier=self._tier,
            )
            for node_id in ids
        }  # fmt: skip
        self._judge = ReplicaJudge(
            self._machines.values(),
            lambda topic, index: self._clients.deletable_end(topic, index),
            is_flushed=settings.is_flushed,
            is_compacted=self._is_compacted,
            tier=self._tier,
        )
        self._bootstrap = [f"{host_of(node_id)}:{BROKER_PORT}" for node_id in ids]
        self._state = ClusterState(self._machines, self._judge, lambda: self._clients.places())
        self._clients = ClusterClients(
            seed, shape, settings, self._bootstrap,
            loop=loop, random=random, state=self._state, judge=self._judge, trace=self._trace,
        )  # fmt: skip
        self._files = FileJudge(
            self._machines.values(),
            self._judge,
            self._clients.history,
            is_compacted=self._is_compacted,
            tier=self._tier,
        )
        self._files.table = self._clients.table
        if self._clients.load is not None:
            self._files.transactions = self._clients.load.history
        self._operator: Operator | None = None
        self._mover: DirectoryMover | None = None
        self._faults: ClusterFaults | None = None
        self._is_over = False
        self._observer = Process("observer", "10.0.3.1")
        self._log = TraceLog(self._trace)
        loop.after_turn = self._judge.look
        loop.on_exception = self._on_exception

    def _trace(self, line: str) -> None:
        line = f"{self._loop.time():.6f} {line}"
        self._hash.update(line.encode() + b"\n")
        if self._write_line is not None:
            self._write_line(line)

    def _is_compacted(self, topic: str) -> bool:
        return self._shape.has_compaction and topic in _COMPACTED

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
        clients, history = self._clients, self._clients.history
        return ClusterRun(
            seed=self._seed,
            shape=self._shape.options,
            violations=self._all_violations(),
            is_live=is_live,
            virtual_s=self._loop.time(),
            acknowledged_count=history.acknowledged_count,
            deleted_count=sum(self._judge.highest_log_start(TOPIC, index) for index in range(history.partition_count)),
            read_count=history.read_count,
            leader_epoch_count=self._judge.leader_epoch_count,
            check_count=self._judge.check_count,
            turn_count=self._loop.turn_count,
            faults=faults,
            operations=sum(
                (one.counts for one in (self._operator, self._mover) if one is not None), clients.operations
            ),
            zombies=clients.zombies.counts,
            client_errors=clients.errors,
            commit_count=sum(group.commit_count for group in clients.groups),
            transaction_count=0 if clients.load is None else clients.load.history.commit_count,
            compacted_count=self._files.compacted_count,
            tiered_count=0 if self._tier is None else self._tier.put_count,
            untiered_count=0 if self._tier is None else self._tier.delete_count,
            fenced_count=0 if self._watch is None else self._watch.count,
            file_check_count=self._files.check_count,
            trace_hash=self._hash.hexdigest(),
        )

    def _play(self) -> tuple[bool, Counter[str]]:
        for machine in self._machines.values():
            machine.start()
        clients, state = self._clients, self._state
        configs = self._settings.of_topics(self._random, has_retention=clients.has_retention)
        configs_of = {topic: _without_deletion(configs) for topic in clients.topics()}
        configs_of[TOPIC] = configs
        if clients.table is not None:
            of_table = configs_of[TABLE] = self._settings.of_tables(self._seed, configs)
            self._files.keeps_tombstones = int(of_table["delete.retention.ms"]) >= DAY_MS
        for topic in clients.tiered_topics():
            configs_of[topic] = self._settings.of_tiered(self._seed, configs_of[topic])
        for topic, partition_count in clients.topics().items():
            creating = self._observe(
                create_topic(
                    self._bootstrap, topic, partitions=partition_count,
                    replication_factor=self._shape.replication_factor,
                    configs=configs_of[topic],
                )
            )  # fmt: skip
            if not self._wait(creating.done, _START_S):
                return False, Counter()
            creating.result()
        clients.start()
        operator = self._operator = self._start_operator(configs)
        self._make_internal_segments_small(operator)
        mover = self._mover = self._start_mover()
        processes = [*clients.processes, *(one.process for one in (operator, mover) if one.is_busy)]
        faults = self._faults = ClusterFaults(
            self._machines, processes,
            loop=self._loop, network=self._network, random=Random(self._random.getrandbits(64)), trace=self._trace,
            is_whole=state.is_whole, has_caught_up=state.has_caught_up, is_flushed=self._settings.is_flushed,
            is_replicated=self._shape.replication_factor > 1, counts=state.counts, may_count=state.may_count,
            leaders=state.leaders, profile=self._shape.profile,
            active_controller=lambda: self._log.active_controller, on_crash_of_all=self._on_crash_of_all,
            tier=self._tier, is_compacted=_COMPACTED.__contains__,
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
            self._machines.values(), network=self._network, session_ms=self._settings.session_ms,
            image=lambda: self._judge.image, now_s=self._loop.time, is_held_up=lambda: ambushes.is_under_way,
        )  # fmt: skip
        damage = self._damage = DamageWatch(self._machines.values(), now_s=self._loop.time)
        self._loop.after_turn = after_turn
        ambushes.begin()
        delays.begin()
        end_s = self._loop.time() + self._shape.faults_s
        while self._loop.time() < end_s and not self._all_violations():
            self._loop.run_for(self._random.uniform(0, 2 * _STEP_S))
            watch.look()
            damage.look()
            self._drains.look()
            if not ambushes.is_alone:
                faults.step()
                delays.step()
        ambushes.end()
        delays.end()
        faults.heal_all()
        damage.is_healed = True
        operator.is_stopping = mover.is_stopping = clients.zombies.is_over = True
        settling = [
            operator.process.run(lambda: self._loop.create_task(operator.settle())),
            mover.process.run(lambda: self._loop.create_task(mover.settle())),
        ]
        if not self._wait(lambda: all(one.done() for one in settling), _HEALED_S, each_step=faults.keep_up):
            return False, faults.counts
        before, transactions_before = clients.acknowledged_counts(), clients.commit_counts()
        is_live = not self._all_violations() and self._wait(
            lambda: (
                state.is_whole()
                and faults.is_settled
                and _all_above(clients.acknowledged_counts(), [count + 3 for count in before])
                and _all_above(clients.commit_counts(), transactions_before)
                and not self._files.unfinished_moves(clients.places())
            ),
            _HEALED_S,
            each_step=faults.keep_up,
        )
        if not is_live:
            self._trace(f"not live: {state.what_is_missing()}")
            self._trace(f"not live: node with a damaged file: {faults.damaged_node}")
            self._trace(f"not live: moves: {self._files.unfinished_moves(clients.places())}")
            counts = [count - old for count, old in zip(clients.acknowledged_counts(), before, strict=True)]
            transactions = clients.commit_counts()
            self._trace(f"not live: acknowledged {counts}, transactions {transactions_before} to {transactions}")
        for client in (*clients.producers, *clients.table_clients, clients.rereader, clients.deleter):
            if client is not None:
                client.is_stopping = True
        ending = [*clients.producers, *clients.table_clients]
        if is_live and not self._wait(lambda: all(client.is_done for client in ending), _HEALED_S):
            is_live = False
            self._trace(f"not live: {[str(client.process) for client in ending if not client.is_done]} did not end")
        if is_live and not self._wait(lambda: not self._judge.untiered(), _HEALED_S):
            is_live = False
            self._trace(f"not live: {'; '.join(self._judge.untiered())}")
        is_live = is_live and self._read_back() and self._read_table() and self._read_by_groups()
        is_live = is_live and self._finish_transactions()
        for machine in self._machines.values():
            lost = [] if machine.process is None else machine.process.lost_exceptions()
            for name, error in lost:
                sentence = without_addresses(f"{machine.process}: {name} ended by {type(error).__name__}: {error}")
                self._violations.append(f"unhandled exception: {sentence}")
        if not is_live:
            for process in processes:
                for name, error in process.lost_exceptions():
                    self._trace(f"not live: {process}: {name} ended by {type(error).__name__}: {error}")
        self._violations += differing_events(self._machines.values())
        if is_live and not self._all_violations():
            self._is_over = True
            faults.crash_all()
        return is_live, faults.counts

    def _on_crash_of_all(self) -> None:
        """No process runs: the files are all that there is of the cluster."""
        self._violations += self._files.look(self._clients.places(), is_end=self._is_over)

    def _start_operator(self, configs: Mapping[str, str]) -> Operator:
        topics: Counter[str] = Counter(topic for topic, _ in self._clients.places())
        operator = Operator(
            self._shape.node_ids, topics,
            min_isr=configs["min.insync.replicas"],
            has_retention=lambda topic: topic == TOPIC and self._clients.has_retention,
            registration=self._judge.registration, profile=self._shape.profile,
            loop=self._loop, random=Random(f"operator {self._seed}"), trace=self._trace,
        )  # fmt: skip
        operator.start()
        return operator

    def _start_mover(self) -> DirectoryMover:
        mover = DirectoryMover(
            self._shape.node_ids, next(iter(self._machines.values())).log_directories, self._clients.places(),
            registration=self._judge.registration, profile=self._shape.profile,
            loop=self._loop, random=Random(f"moves {self._seed}"), trace=self._trace,
        )  # fmt: skip
        mover.start()
        return mover

    def _make_internal_segments_small(self, operator: Operator) -> None:
        """As only segments that are not appended to are compacted."""
        for topic in sorted({topic for topic, _ in self._clients.places()} - self._clients.topics().keys()):
            if self._is_compacted(topic):
                setting = operator.set_config(topic, SEGMENT_BYTES, _INTERNAL_SEGMENT_BYTES)
                operator.process.run(lambda work=setting: self._loop.create_task(work))  # type: ignore[misc]

    def _read_back(self) -> bool:
        history, consumers = self._clients.history, self._clients.consumers
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

    def _read_table(self) -> bool:
        table = self._clients.table
        if table is None:
            return True
        reading = self._observe(read_table(self._bootstrap, client_id="the last reader"))
        if not self._wait(reading.done, _HEALED_S):
            return False
        table.on_read("the last reader", *reading.result(), began_s=self._loop.time())
        return True

    def _read_by_groups(self) -> bool:
        """Until they have committed all that there is."""
        clients = self._clients
        groups = [group for group, count in zip(clients.groups, self._shape.member_counts, strict=True) if count]

        def ends() -> list[int]:
            # A producer that did not end when it was told to may write until the last moment.
            return [self._judge.committed_end(TOPIC, index) for index in range(clients.history.partition_count)]

        is_live = self._wait(
            lambda: all(
                register.last_told == end or end == self._judge.log_start(TOPIC, index)
                for group in groups
                for index, (register, end) in enumerate(zip(group.offsets, ends(), strict=True))
            ),
            _HEALED_S,
        )
        for member in clients.members:
            member.is_stopping = True
        is_live = is_live and self._wait(lambda: all(member.is_done for member in clients.members), _HEALED_S)
        if not is_live:
            places = [(group.group, [one.last_told for one in group.offsets]) for group in groups]
            stuck = [str(member.process) for member in clients.members if not member.is_done]
            self._trace(f"not live: groups have {places} of {ends()}, and {stuck} did not end")
        return is_live

    def _finish_transactions(self) -> bool:
        load = self._clients.load
        if load is None:
            return True
        finishing = self._observe(load.finish())
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
            self._drains.look()
            if self._damage is not None:
                self._damage.look()
            if each_step is not None:
                each_step()
            self._loop.run_for(_STEP_S)
        return True

    # What must not be.

    def _all_violations(self) -> list[str]:
        return [
            *self._judge.violations, *self._clients.violations,
            *(() if self._watch is None else self._watch.violations), *self._drains.violations, *self._uncut(),
            *(() if self._damage is None else self._damage.violations),
            *(() if self._tier is None else self._tier.violations), *self._violations,
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
