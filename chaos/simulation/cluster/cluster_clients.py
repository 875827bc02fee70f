"""All clients of one run of the simulated cluster, and what they do: produce, read, delete, transactions, groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random

from ....broker.tiers.rules.metadata_records import METADATA_TOPIC
from ...checkers.tables import TableHistory
from .clients import Consumer, History, Producer
from .cluster_settings import ClusterSettings
from .cluster_state import OFFSETS_TOPIC, ClusterState
from .consumer_members import ConsumerMember
from .deleter import Deleter
from .group_members import GroupHistory, GroupMember
from .loop import SimulatedLoop
from .pipelining_producer import PipeliningProducer
from .process import Process
from .replica_judge import ReplicaJudge
from .rereader import Rereader
from .shapes import Shape
from .table_clients import TABLE, TableReader, TableWriter
from .transactional_load import TRANSACTIONS_TOPIC, TransactionalLoad
from .world import START_MS
from .zombies import Zombies

TOPIC = "simulated"

# Of all runs, those with a producer that has several batches in flight.
_PIPELINING_SHARE = 0.5


class ClusterClients:
    """`start` them once their topics are there."""

    def __init__(
        self,
        seed: int,
        shape: Shape,
        settings: ClusterSettings,
        bootstrap: Sequence[str],
        *,
        loop: SimulatedLoop,
        random: Random,
        state: ClusterState,
        judge: ReplicaJudge,
        trace: Callable[[str], None],
    ) -> None:
        self._seed = seed
        self._shape = shape
        self._settings = settings
        self._bootstrap = list(bootstrap)
        self._loop = loop
        self._random = random
        self._state = state
        self._judge = judge
        self._trace = trace
        self.history = History(TOPIC, random.choice((1, 2, 3)), judge.committed_end)
        self.zombies = Zombies(
            self._bootstrap, leader=state.leader_of, random=Random(f"zombies {seed}"), profile=shape.profile,
            now_ms=self._now_ms, trace=trace,
        )  # fmt: skip
        self.groups = [GroupHistory(name, TOPIC, self.history.partition_count) for name in ("group", "consumers")]
        # Some topics delete what is old by themselves; in most a client asks for it now and then.
        self.has_retention = random.random() < 0.2
        self.producers: list[Producer | PipeliningProducer] = []
        self.consumers: list[Consumer] = []
        self.members: list[GroupMember | ConsumerMember] = []
        self.deleter: Deleter | None = None
        self.table = TableHistory() if shape.has_compaction else None
        self.table_writers: list[TableWriter] = []
        self.table_reader: TableReader | None = None
        self.rereader: Rereader | None = None
        self.load: TransactionalLoad | None = None
        if shape.has_transactions:
            self.load = TransactionalLoad(
                seed, self._bootstrap, loop=loop, request_timeout_ms=settings.request_timeout_ms,
                group_coordinator=state.group_coordinator, leader=state.leader_of, zombies=self.zombies, trace=trace,
            )  # fmt: skip

    def _now_ms(self) -> int:
        return START_MS + int(self._loop.time() * 1000)

    def _new_random(self) -> Random:
        return Random(self._random.getrandbits(64))

    # What they do it to.

    def topics(self) -> Mapping[str, int]:
        """Those that they need, and how many partitions each has."""
        tables = {} if self.table is None else {TABLE: 1}
        return {TOPIC: self.history.partition_count} | tables | ({} if self.load is None else self.load.topics)

    def places(self) -> list[tuple[str, int]]:
        """The partitions that faults and judge look at."""
        places = [(topic, index) for topic, count in self.topics().items() for index in range(count)]
        if self.load is not None:
            places.append((TRANSACTIONS_TOPIC, 0))
        if self._shape.has_groups or (self.load is not None and self.load.commits_offsets):
            places.append((OFFSETS_TOPIC, 0))
        if self._shape.has_tiers:
            places.append((METADATA_TOPIC, 0))
        return places

    def tiered_topics(self) -> list[str]:
        return [topic for topic in self.topics() if self._shape.has_tiers and topic != TABLE]

    def deletable_end(self, topic: str, index: int) -> int | None:
        """The highest offset that one of them has asked to delete up to; None: nodes may delete all by themselves."""
        if self.load is not None and topic in self.load.topics:
            return 0
        if topic == TABLE:
            return 0
        if topic != TOPIC or self.has_retention:
            return None
        return 0 if self.deleter is None else self.deleter.asked_ends[index]

    # Their start.

    def start(self) -> None:
        self._make_producers()
        self.consumers = [
            Consumer(
                f"consumer{number}", self._bootstrap, self.history, loop=self._loop, random=self._new_random(),
            )
            for number in (1, 2)
        ]  # fmt: skip
        self._start_deleter()
        self._make_members()
        self._start_table()
        self._start_rereader()
        for producer in self.producers:
            producer.start()
        if self.load is not None:
            self.load.start()
        for member in self.members:
            member.start()
        for consumer in self.consumers:
            consumer.start()

    def _make_producers(self) -> None:
        self.producers = [
            Producer(
                name, self._bootstrap, self.history, is_idempotent=is_idempotent, loop=self._loop,
                random=self._new_random(), request_timeout_ms=self._settings.request_timeout_ms, trace=self._trace,
            )
            for name, is_idempotent in (("idempotent1", True), ("plain2", False))
        ]  # fmt: skip
        pipelining = Random(f"pipelining {self._seed}")
        if pipelining.random() < _PIPELINING_SHARE:
            self.producers.append(
                PipeliningProducer(
                    "pipelined3", self._bootstrap, self.history, loop=self._loop, random=pipelining,
                    request_timeout_ms=self._settings.request_timeout_ms, leader=self._state.leader_of,
                    now_ms=self._now_ms, trace=self._trace,
                )
            )  # fmt: skip

    def _start_deleter(self) -> None:
        if not self.has_retention and self._random.random() < 0.7:
            deleter = Deleter(
                "deleter", self._bootstrap, self.history,
                log_start=lambda partition: self._judge.log_start(TOPIC, partition), profile=self._shape.profile,
                loop=self._loop, random=self._new_random(),
            )  # fmt: skip
            if deleter.is_busy:
                self.deleter = deleter
                deleter.start()

    def _make_members(self) -> None:
        of_classic, of_consumer = self.groups
        self.members = [
            *(
                GroupMember(
                    f"member{number}", self._bootstrap, of_classic, zombies=self.zombies,
                    loop=self._loop, random=self._new_random(), trace=self._trace,
                )
                for number in range(1, self._shape.member_counts.classic + 1)
            ),
            *(
                ConsumerMember(
                    f"consumer-member{number}", self._bootstrap, of_consumer,
                    coordinator=self._state.group_coordinator,
                    committed_end=lambda partition: self._judge.committed_end(TOPIC, partition),
                    session_s=self._settings.consumer_session_ms / 1000, zombies=self.zombies,
                    loop=self._loop, random=self._new_random(), trace=self._trace,
                )
                for number in range(1, self._shape.member_counts.consumer + 1)
            ),
        ]  # fmt: skip

    def _start_table(self) -> None:
        if self.table is None:
            return
        random = Random(f"table clients {self._seed}")
        names: dict[str, str | None] = {"writer1": None, "writer2": "table" if self._shape.has_transactions else None}
        self.table_writers = [
            TableWriter(
                name, f"10.0.1.5{number}", self._bootstrap, self.table, transactional_id=transactional_id,
                loop=self._loop, random=Random(random.getrandbits(64)),
                request_timeout_ms=self._settings.request_timeout_ms, trace=self._trace,
            )
            for number, (name, transactional_id) in enumerate(names.items())
        ]  # fmt: skip
        self.table_reader = TableReader(
            "table-reader", self._bootstrap, self.table, loop=self._loop, random=Random(random.getrandbits(64))
        )
        for one in self.table_clients:
            one.start()

    def _start_rereader(self) -> None:
        if self._shape.has_tiers:
            self.rereader = Rereader(
                "rereader", self._bootstrap, self.history,
                log_start=lambda partition: self._judge.highest_log_start(TOPIC, partition),
                loop=self._loop, random=Random(f"rereader {self._seed}"),
            )  # fmt: skip
            self.rereader.start()

    # What came of them.

    @property
    def table_clients(self) -> list[TableWriter | TableReader]:
        return [*self.table_writers, *(() if self.table_reader is None else (self.table_reader,))]

    @property
    def processes(self) -> list[Process]:
        clients = (
            *self.producers, *self.consumers, *self.members, *self.table_clients,
            *(() if self.deleter is None else (self.deleter,)),
            *(() if self.rereader is None else (self.rereader,)),
        )  # fmt: skip
        return [*(one.process for one in clients), *(() if self.load is None else self.load.processes)]

    def acknowledged_counts(self) -> list[int]:
        return [producer.acknowledged_count for producer in (*self.producers, *self.table_writers)]

    def commit_counts(self) -> list[int]:
        """Of transactional clients."""
        return [] if self.load is None else self.load.commit_counts()

    @property
    def operations(self) -> Counter[str]:
        """What they had nodes do beside producing and reading."""
        return (Counter() if self.deleter is None else self.deleter.counts) + (
            Counter() if self.load is None else self.load.history.operations
        )

    @property
    def errors(self) -> Counter[str]:
        errors = sum((group.errors for group in self.groups), self.history.errors)
        return errors + (Counter() if self.table is None else self.table.errors)

    @property
    def violations(self) -> list[str]:
        of_groups = [violation for group in self.groups for violation in group.violations]
        of_load = [] if self.load is None else self.load.violations
        of_table = [] if self.table is None else self.table.violations
        return [*self.history.violations, *of_groups, *self.zombies.violations, *of_load, *of_table]
