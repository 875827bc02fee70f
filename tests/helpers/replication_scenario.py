"""Five simulated nodes, of which three have the only partition of a topic, and what is done to them, told in words.

A, B and C are its replicas, in this order, so A leads at first; the active controller is another one, which nothing
happens to. What is told: what a test does (`say`, and every method that does something), what clients are answered,
what the metadata become, what the nodes log of their ISRs and cuts, and, with `show`, what each replica has. Nothing
depends on how long anything takes.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Coroutine, Mapping
from datetime import timedelta
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from produce_requests import produce_request

from penstock.broker.replicas.partition import Partition
from penstock.chaos.simulation.cluster.loop import new_loop
from penstock.chaos.simulation.cluster.machine import BROKER_PORT, Machine, host_of
from penstock.chaos.simulation.cluster.network import Network
from penstock.chaos.simulation.cluster.process import Process, current_process
from penstock.chaos.simulation.cluster.replica_judge import ReplicaJudge
from penstock.chaos.simulation.cluster.transport import StreamTransport
from penstock.chaos.simulation.cluster.world import World
from penstock.client.connection import connect
from penstock.protocol.apis import ApiKey
from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import CorruptData, ErrorCode
from penstock.protocol.messages import Request
from penstock.protocol.records import Record, read_records, write_batch
from penstock.quorum.metadata.image import PartitionRegistration

T = TypeVar("T")

TOPIC = "t"
ALL, LEADER_ONLY = -1, 1
NODE_IDS = (1, 2, 3, 4, 5)
LAG_MS = 1_000
SESSION_MS = 3_000
# In simulated seconds: what takes longer does not happen.
PATIENCE_S = 30.0
STEP_S = 0.01
# Longer than a follower's poll, with whose answer it hears of the high watermark.
UNCHANGED_STEPS = 60
ANSWER_MS = 1_000
PREFERRED = i8(0)
PROPOSED = re.compile(r"AlterPartition response: topic=t partition=0 proposed=\[(.*)\] answer=(\w+)")
CUT = re.compile(
    r"Truncating partition: topic=t partition=0 leader=\d leader_epoch=\d+ from=(\d+) to=(\d+) high_watermark=\d+"
)
ACTIVE = re.compile(r"Becoming the active controller: node_id=(\d) epoch=\d+")


class Scenario:
    """`text` is what was told. `min_isr` is the topic's min.insync.replicas."""

    def __init__(self, *, min_isr: int = 1, settings: Mapping[str, str] | None = None) -> None:
        self._lines: list[str] = []
        self._loop = loop = new_loop(Random(1))
        world = World()
        world.loop_s = loop.time
        self._network = loop.network = Network(loop, Random(2), lambda _: None)
        configs = {
            "broker.session.timeout.ms": str(SESSION_MS),
            "broker.heartbeat.interval.ms": "500",
            "replica.lag.time.max.ms": str(LAG_MS),
            "auto.leader.rebalance.enable": "false",
            **(settings or {}),
        }
        machines = {
            node_id: Machine(
                node_id, NODE_IDS, configs, loop=loop, network=self._network, wall_clock_ms=world.wall_clock_ms,
                random=Random(node_id), trace=lambda _: None, on_failure=lambda *_: None,
            )
            for node_id in NODE_IDS
        }  # fmt: skip
        self._judge = ReplicaJudge(machines.values(), lambda *_: None)
        self._registration: PartitionRegistration | None = None
        self._names: dict[int, str] = {}
        self._controller_id = 0
        self._topic_id: UUID | None = None
        self._client = Process("client", "10.0.9.1")
        loop.after_turn = self._look
        self._log = _Log(self._tell_log)
        logger = logging.getLogger("penstock")
        self._level = logger.level
        logger.addHandler(self._log)
        logger.setLevel(logging.INFO)
        logging.getLogger("penstock.broker.replication.alter_partition_manager").setLevel(logging.DEBUG)
        for machine in machines.values():
            machine.start()
        self.until(lambda: all(machine.is_ready for machine in machines.values()))
        others = [node_id for node_id in NODE_IDS if node_id != self._controller_id]
        self._machines = {name: machines[node_id] for name, node_id in zip("ABC", others, strict=False)}
        self._others = [machine for machine in machines.values() if machine.node_id not in others[:3]]
        self._names = {machine.node_id: name for name, machine in self._machines.items()}
        self._run(self._create_topic(host_of(others[0]), tuple(others[:3]), min_isr))
        self.until(lambda: self.leader == "A")

    def end(self) -> str:
        """All that was told. No invariant of replication was broken."""
        logger = logging.getLogger("penstock")
        logger.removeHandler(self._log)
        logger.setLevel(self._level)
        self._loop.close()
        assert not self._judge.violations, self._judge.violations
        return "\n".join(self._lines) + "\n"

    # What is told.

    def say(self, sentence: str) -> None:
        self._lines.append(sentence)

    def _tell(self, fact: str) -> None:
        if self._names:
            self._lines.append(f"    {fact}")

    def show(self) -> None:
        """What each replica has, once nothing changes any more."""
        self.settle()
        for name, machine in self._machines.items():
            partition = self._hosted(name)
            if partition is None:
                self._tell(f"{name}: {'down' if machine.node is None else 'not there yet'}")
                continue
            state, log = partition.state, partition.log
            epochs = ", ".join(f"epoch {epoch} from {start}" for epoch, start in log.leader_epochs.entries) or "nothing"
            role = "leads" if state.is_leader else "follows" if state.is_following else "has no leader"
            counted = ""
            if state.pending_isr is not None:
                counted = f", counts {self._set(state.maximal_isr)} as in sync"
            self._tell(
                f"{name}: {role} in epoch {state.leader_epoch}, log ends at {log.log_end_offset} ({epochs}), "
                f"high watermark {state.high_watermark}{counted}"
            )

    def _look(self, turn: int) -> None:
        self._judge.look(turn)
        registration = self._judge.registration(TOPIC, 0)
        if registration is not None and registration != self._registration:
            self._registration = registration
            elr = f", eligible {self._set(registration.elr)}" if registration.elr else ""
            self._tell(
                f"metadata: {self.leader or 'no broker'} leads, leader epoch {registration.leader_epoch}, "
                f"partition epoch {registration.partition_epoch}, ISR {self._set(registration.isr)}{elr}"
            )

    def _tell_log(self, process: Process, text: str) -> None:
        active = ACTIVE.fullmatch(text)
        if active:
            self._controller_id = int(active[1])
        node_id = int(process.host.rpartition(".")[2])
        name = self._names.get(node_id)
        proposed, cut = PROPOSED.fullmatch(text), CUT.fullmatch(text)
        if name and proposed:
            members = self._set([int(member) for member in proposed[1].split(", ")])
            answer = "done" if proposed[2] == "NONE" else proposed[2]
            self._tell(f"{name} asks for the ISR {members}: {answer}")
        if name and cut:
            self._tell(f"{name} cuts its log from {cut[1]} to {cut[2]}")

    def _set(self, node_ids: Collection[int]) -> str:
        return "{" + ", ".join(sorted(self._names[node_id] for node_id in node_ids)) + "}"

    # What is asked.

    @property
    def leader(self) -> str | None:
        return None if self._registration is None else self._names.get(self._registration.leader)

    @property
    def isr(self) -> set[str]:
        return set() if self._registration is None else {self._names[node_id] for node_id in self._registration.isr}

    def end_of(self, name: str) -> int:
        """Where a replica's log ends; -1 while there is none."""
        partition = self._hosted(name)
        return -1 if partition is None else partition.log.log_end_offset

    def epoch_of(self, name: str) -> int:
        partition = self._hosted(name)
        return -1 if partition is None else partition.state.leader_epoch

    def has_pending_isr(self, name: str) -> bool:
        partition = self._hosted(name)
        return partition is not None and partition.state.pending_isr is not None

    def _hosted(self, name: str) -> Partition | None:
        node = self._machines[name].node
        return node.parts.partitions.find(TOPIC, 0) if node is not None and node.has_parts else None

    # What happens.

    def until(self, is_so: Callable[[], bool]) -> None:
        """Let time pass until it is so."""
        end_s = self._loop.time() + PATIENCE_S
        while not is_so():
            assert self._loop.time() < end_s, "it does not happen:\n" + "\n".join(self._lines)
            self._loop.run_for(STEP_S)

    def pass_time(self, duration_s: float) -> None:
        self._loop.run_for(duration_s)

    def settle(self) -> None:
        """Let time pass until nothing has changed for a while."""
        state, same_count = self._state(), 0
        while same_count < UNCHANGED_STEPS:
            self._loop.run_for(STEP_S)
            before, state = state, self._state()
            same_count = same_count + 1 if state == before else 0

    def _state(self) -> object:
        partition = [self._hosted(name) for name in self._machines]
        return self._registration, [
            one and (one.log.log_end_offset, one.state.high_watermark, one.state.partition_epoch) for one in partition
        ]

    def kill(self, name: str) -> None:
        """SIGKILL: what was written is there."""
        self.say(f"{name} is killed")
        self._machines[name].kill(has_power=True)

    def lose_power(self, name: str) -> None:
        """Nothing that was not synced is there afterwards."""
        self.say(f"{name} loses its power, and what it has not synced")
        self._machines[name].kill(has_power=False)

    def stop(self, name: str) -> None:
        """SIGTERM: in good order."""
        self.say(f"{name} is stopped in good order")
        machine = self._machines[name]
        machine.stop()
        self.until(lambda: not machine.is_up)

    def start(self, name: str) -> None:
        self.say(f"{name} is started")
        machine = self._machines[name]
        machine.start()
        self.until(lambda: machine.is_ready)

    def cut(self, *names: str) -> None:
        """Each of these reaches no other node; clients reach all."""
        self.say(f"{' and '.join(names)} cannot reach other nodes any more")
        for a in map(self._host, names):
            for b in (machine.host for machine in (*self._machines.values(), *self._others)):
                if a != b:
                    self._network.cut(a, b)
                    self._network.cut(b, a)

    def cut_between(self, a: str, b: str) -> None:
        self.say(f"{a} and {b} cannot reach each other any more")
        self._network.cut(self._host(a), self._host(b))
        self._network.cut(self._host(b), self._host(a))

    def heal(self) -> None:
        self.say("all reach each other again")
        for source, target in self._network.cuts:
            self._network.heal(source, target)

    def elect_preferred(self, name: str) -> None:
        """Asks this node; the preferred leader is A."""
        self.say(f"an administrator has the preferred leader elected: {self._run(self._elect(self._host(name)))}")

    def hold_up(self, name: str, api_key: ApiKey, duration_s: float) -> None:
        """The next request of this kind that a node sends arrives so much later; its other connections go on."""
        self.say(f"the next {api_key.name} of {name} will be under way for {duration_s:g} s")
        host = self._host(name)

        def delay_s(end: StreamTransport, data: bytes) -> float:
            if end.process.host != host or int.from_bytes(data[4:6], "big") != api_key:
                return 0.0
            self._network.hold_up = None
            return duration_s

        self._network.hold_up = delay_s

    def _host(self, name: str) -> str:
        return self._machines[name].host

    # Clients.

    def produce(self, name: str, count: int, *, acks: int = ALL) -> None:
        """One batch, to this node; to one that is about to lead, once it does."""
        if self.leader == name:
            self.until(lambda: self._knows_that_it_leads(name))
        answer = self._run(self._produce(self._host(name), count, acks))
        what = f"{count} record{'s' if count > 1 else ''}"
        self.say(f"a client sends {what} with acks={'all' if acks == ALL else acks} to {name}: {answer}")

    def _knows_that_it_leads(self, name: str) -> bool:
        partition = self._hosted(name)
        # Others may have heard of its leadership before it did.
        return self.leader != name or (partition is not None and partition.state.is_leader)

    def read(self, name: str, offset: int, leader_epoch: int = -1) -> None:
        """A consumer's fetch, which may name the leader epoch that it believes in (KIP-320)."""
        answer = self._run(self._fetch(self._host(name), offset, leader_epoch))
        believed = f", believing in leader epoch {leader_epoch}" if leader_epoch >= 0 else ""
        self.say(f"a consumer asks {name} for offset {offset}{believed}: {answer}")

    def find_end(self, name: str, epoch: int, current_leader_epoch: int) -> None:
        """OffsetForLeaderEpoch: how a consumer finds where what it has read is gone (KIP-320)."""
        answer = self._run(self._epoch_end(self._host(name), epoch, current_leader_epoch))
        self.say(f"a consumer asks {name}, in leader epoch {current_leader_epoch}, where epoch {epoch} ends: {answer}")

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        task: asyncio.Task[T] = self._client.run(lambda: self._loop.create_task(work))
        self.until(task.done)
        return task.result()

    async def _ask(self, host: str, request: Request) -> Any:
        """The answer, or None when there is none."""
        try:
            async with await connect(host, BROKER_PORT, timeout_ms=ANSWER_MS) as connection:
                return await connection.call(request)
        except (ConnectionError, TimeoutError, CorruptData):
            return None

    async def _create_topic(self, host: str, replicas: tuple[int, ...], min_isr: int) -> str:
        placed = CreatableReplicaAssignment(partition_index=i32(0), broker_ids=tuple(map(BrokerId, replicas)))
        config = CreatableTopicConfig(name="min.insync.replicas", value=str(min_isr))
        topic = CreatableTopic(
            name=TopicName(TOPIC), num_partitions=i32(-1), replication_factor=i16(-1), assignments=(placed,),
            configs=(config,),
        )  # fmt: skip
        response = await self._ask(host, CreateTopicsRequest(topics=(topic,)))
        self._topic_id = response.topics[0].topic_id
        return ErrorCode(int(response.topics[0].error_code)).name

    async def _elect(self, host: str) -> str:
        wanted = TopicPartitions(topic=TopicName(TOPIC), partitions=(i32(0),))
        timeout = i32Timedelta.parse(timedelta(milliseconds=ANSWER_MS))
        request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=(wanted,), timeout=timeout)
        response = await self._ask(host, request)
        return "no answer" if response is None else ErrorCode(int(response.error_code)).name

    async def _produce(self, host: str, count: int, acks: int) -> str:
        records = [Record(offset=n, timestamp_ms=0, key=None, value=b"%d" % n, headers=()) for n in range(count)]
        request = produce_request(self._topic_id, 0, write_batch(records), acks=acks, timeout_ms=ANSWER_MS - 200)
        return told_of_produce(await self._ask(host, request), count)

    async def _fetch(self, host: str, offset: int, leader_epoch: int) -> str:
        wanted = FetchPartition(
            partition=i32(0), current_leader_epoch=i32(leader_epoch), fetch_offset=i64(offset),
            partition_max_bytes=i32(1_000_000),
        )  # fmt: skip
        request = FetchRequest(
            max_wait=i32Timedelta.parse(timedelta()),
            min_bytes=i32(0),
            topics=(FetchTopic(topic=TopicName(TOPIC), partitions=(wanted,)),),
            forgotten_topics_data=(),
        )
        response = await self._ask(host, request)
        if response is None:
            return "no answer"
        answer = response.responses[0].partitions[0]
        error = ErrorCode(int(answer.error_code))
        if error is not ErrorCode.NONE:
            return error.name
        data = bytes(answer.records or b"")
        found = [
            str(record.offset)
            for position, header in iterate_headers(memoryview(data), 0, len(data))
            for record in read_records(memoryview(data)[position : position + header.size_bytes], header)
            if record.offset >= offset
        ]
        return f"{'offset ' + ', '.join(found) if found else 'nothing'}; high watermark {answer.high_watermark}"

    async def _epoch_end(self, host: str, epoch: int, current_leader_epoch: int) -> str:
        wanted = OffsetForLeaderPartition(
            partition=i32(0), current_leader_epoch=i32(current_leader_epoch), leader_epoch=i32(epoch)
        )
        topic = OffsetForLeaderTopic(topic=TopicName(TOPIC), partitions=(wanted,))
        response = await self._ask(host, OffsetForLeaderEpochRequest(replica_id=BrokerId(-1), topics=(topic,)))
        if response is None:
            return "no answer"
        answer = response.topics[0].partitions[0]
        error = ErrorCode(int(answer.error_code))
        return error.name if error is not ErrorCode.NONE else f"epoch {answer.leader_epoch} ends at {answer.end_offset}"


def told_of_produce(response: Any, count: int) -> str:
    if response is None:
        return "no answer"
    answer = response.responses[0].partition_responses[0]
    error = ErrorCode(int(answer.error_code))
    if error is not ErrorCode.NONE:
        return error.name
    first, last = int(answer.base_offset), int(answer.base_offset) + count - 1
    return f"acknowledged at {first}" + (f" to {last}" if last > first else "")


class _Log(logging.Handler):
    def __init__(self, tell: Callable[[Process, str], None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        process = current_process()
        if process is not None and not process.is_dead and process.name.startswith("node-"):
            self._tell(process, record.getMessage())
