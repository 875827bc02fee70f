"""The controller on a single voter with a disk in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from uuid import UUID

import pytest
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32
from metadata_cluster import CLUSTER_ID
from waiting import loop_until

from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, ControllerEpoch, NodeId, TopicId
from penstock.quorum.controller.controller import Controller
from penstock.quorum.decisions.bootstrap import bootstrap_records
from penstock.quorum.decisions.change import split_commands
from penstock.quorum.decisions.context import ControllerConfig, ControllerResult, DecisionContext
from penstock.quorum.decisions.topics import create_topics
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import ConfigResource, MetadataImage
from penstock.quorum.metadata.metadata_log import SnapshotId
from penstock.quorum.metadata.publishers import Publishers
from penstock.quorum.metadata.record_codec import decode_entry
from penstock.quorum.metadata.records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from penstock.quorum.voter.voter import RaftVoter
from penstock.storage.disk.memory_files import MemoryFiles

FOLDER = "/data/quorum"
BROKER = RegisterBrokerRecord(
    broker_id=NodeId(1),
    incarnation_id=UUID(int=1),
    broker_epoch=BrokerEpoch(5),
    is_fenced=False,
    log_dirs=(UUID(int=500),),
)


class Node:
    """A controller, what it published and how it failed."""

    def __init__(
        self, files: MemoryFiles, *, snapshot_bytes: int = 2**20, snapshot_interval_ms: int = 3_600_000
    ) -> None:
        self.published: list[tuple[MetadataDelta, MetadataImage]] = []
        self.failures: list[str] = []
        loop = asyncio.get_running_loop()
        publishers = Publishers()
        publishers.add(self)
        self.voter = RaftVoter(
            files,
            FOLDER,
            node_id=NodeId(1),
            directory_id=UUID(int=500),
            random=Random(5),
            loop=loop,
            wall_clock_ms=lambda: 0,
            reserve_bytes=4096,
        )
        self.controller = Controller(
            self.voter,
            publishers,
            config=ControllerConfig(
                node_id=NodeId(1), snapshot_bytes=snapshot_bytes, snapshot_interval_ms=snapshot_interval_ms
            ),
            bootstrap=bootstrap_records(CLUSTER_ID, min_insync_replicas=1),
            random=Random(1),
            loop=loop,
            wall_clock_ms=lambda: 1_700_000_000_000,
            on_failure=self.failures.append,
        )

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.published.append((delta, image))


@asynccontextmanager
async def running(
    files: MemoryFiles, *, snapshot_bytes: int = 2**20, snapshot_interval_ms: int = 3_600_000
) -> AsyncIterator[Node]:
    node = Node(files, snapshot_bytes=snapshot_bytes, snapshot_interval_ms=snapshot_interval_ms)
    await node.controller.start()
    await node.controller.wait_active()
    try:
        yield node
    finally:
        await node.controller.stop()


def write(*records: MetadataRecord) -> Callable[[MetadataImage, None, DecisionContext], ControllerResult[str]]:
    """Return a decision for these records."""

    def decision(_image: MetadataImage, _request: None, _context: DecisionContext) -> ControllerResult[str]:
        return ControllerResult(records=records, response="done")

    return decision


def creation(name: str, partitions: int = 1) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=TopicName(name), num_partitions=i32(partitions), replication_factor=i16(1), assignments=(), configs=()
    )
    return CreateTopicsRequest(topics=(topic,))


def outcome(response: CreateTopicsResponse) -> ErrorCode:
    return ErrorCode(int(response.topics[0].error_code))


def on_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """Run a test on a loop of its own, for 20 seconds at most."""

    def run() -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test(), 20)

        asyncio.run(bounded())

    return run


@on_a_loop
async def test_the_first_start_writes_the_cluster_s_first_records() -> None:
    async with running(MemoryFiles()) as node:
        assert node.controller.image.cluster_id == CLUSTER_ID
        assert node.controller.image.features["metadata.version"] == 30
        assert node.voter.epoch == 1


@on_a_loop
async def test_an_answer_comes_after_commit_and_publishing() -> None:
    async with running(MemoryFiles()) as node:
        await node.controller.submit(write(BROKER), None)
        assert outcome(await node.controller.submit(create_topics, creation("flights"))) == ErrorCode.NONE
        delta, image = node.published[-1]
        assert image is node.controller.image
        assert [topic.name for topic in delta.topics.changed.values()] == ["flights"]


@on_a_loop
async def test_a_decision_sees_what_is_not_committed_yet_and_its_answer_waits_for_it() -> None:
    async with running(MemoryFiles()) as node:
        await node.controller.submit(write(BROKER), None)
        answers = await asyncio.gather(
            *(node.controller.submit(create_topics, creation("flights")) for _ in range(3)),
            node.controller.submit(create_topics, creation("weather")),
        )
        exists = ErrorCode.TOPIC_ALREADY_EXISTS
        assert [outcome(answer) for answer in answers] == [ErrorCode.NONE, exists, exists, ErrorCode.NONE]
        assert node.controller.image.topics.by_name.keys() == {"flights", "weather"}


@on_a_loop
async def test_proposals_of_one_turn_share_one_sync() -> None:
    files = MemoryFiles()
    async with running(files) as node:
        syncs = files.operation_counts["sync"]
        await asyncio.gather(
            *(
                node.controller.submit(write(FeatureLevelRecord(name=f"f{number}", feature_level=1)), None)
                for number in range(50)
            )
        )
        assert files.operation_counts["sync"] == syncs + 1


@on_a_loop
async def test_a_restart_keeps_the_metadata_and_raises_the_term() -> None:
    files = MemoryFiles()
    async with running(files) as node:
        await node.controller.submit(write(BROKER), None)
        await node.controller.submit(create_topics, creation("flights", partitions=3))
        before = node.controller.image
    async with running(files) as node:
        after = node.controller.image
        assert (after.topics, after.brokers, after.features) == (before.topics, before.brokers, before.features)
        assert node.voter.epoch == 2
        # The no-op of the new term has its place in the log.
        assert (after.offset, after.epoch) == (before.offset + 1, 2)


@on_a_loop
async def test_nothing_is_answered_before_an_entry_of_the_own_term_is_replayed() -> None:
    node = Node(MemoryFiles())
    with pytest.raises(KafkaError) as caught:
        await node.controller.submit(write(BROKER), None)
    assert caught.value.code == ErrorCode.NOT_CONTROLLER


@on_a_loop
async def test_a_failing_disk_fails_what_waits_and_stops_the_node() -> None:
    files = MemoryFiles()
    async with running(files) as node:
        files.fail("sync", under=FOLDER)
        with pytest.raises(KafkaError) as caught:
            await node.controller.submit(write(BROKER), None)
        assert caught.value.code == ErrorCode.NOT_CONTROLLER
        (sentence,) = node.failures
        assert "The metadata journal in /data/quorum cannot be written" in sentence
        with pytest.raises(KafkaError):
            await node.controller.submit(write(BROKER), None)
        assert not node.controller.image.brokers


@on_a_loop
async def test_a_large_change_is_split_and_seen_in_one_step() -> None:
    files = MemoryFiles()
    async with running(files) as node:
        await node.controller.submit(write(BROKER), None)
        offset = node.controller.image.offset
        records = [large_config(number) for number in range(100)]
        published = len(node.published)
        await node.controller.submit(write(*records), None)
        assert node.controller.image.offset > offset + 1
        assert len(node.published) == published + 1
        assert len(node.controller.image.configs.of(ConfigResource(32, "group"))) == 100
    async with running(files) as node:
        assert len(node.controller.image.configs.of(ConfigResource(32, "group"))) == 100


@on_a_loop
async def test_an_unfinished_transaction_of_an_earlier_term_never_happened() -> None:
    files = MemoryFiles()
    async with running(files) as node:
        commands = split_commands(
            0, [TopicRecord(name="t", topic_id=TopicId(UUID(int=2**127))), *map(large_config, range(100))]
        )
        assert len(commands) > 1
        await node.voter.propose(commands[0], epoch=node.voter.epoch)
        assert "t" not in node.controller.image.topics.by_name
    async with running(files) as node:
        assert "t" not in node.controller.image.topics.by_name
        await node.controller.submit(write(BROKER), None)
        assert node.controller.image.brokers.keys() == {1}


def test_commands_are_split_at_transaction_records() -> None:
    commands = split_commands(5, [large_config(number) for number in range(100)])
    assert len(commands) > 1
    assert all(len(command) <= 2**20 for command in commands)
    records = [record for command in commands for record in decode_entry(command).records]
    assert isinstance(records[0], BeginTransactionRecord)
    assert isinstance(records[-1], EndTransactionRecord)
    assert len(records) == 102


@on_a_loop
async def test_snapshots_bound_the_journal() -> None:
    files = MemoryFiles()
    async with running(files, snapshot_bytes=20_000) as node:
        for number in range(300):
            await node.controller.submit(write(feature("f" * 50, 1 + number % 9)), None)
    names = files.list_directory(FOLDER)
    assert sum(name.endswith(".checkpoint") for name in names) == 1
    kept = sum(files.size(f"{FOLDER}/{name}") for name in names if name.endswith(".journal"))
    assert kept < 60_000
    async with running(files) as node:
        assert node.controller.image.features["f" * 50] == 1 + 299 % 9


def snapshots(files: MemoryFiles) -> list[str]:
    return [name for name in files.list_directory(FOLDER) if name.endswith(".checkpoint")]


@on_a_loop
async def test_a_snapshot_is_made_when_its_time_has_come_and_something_is_new() -> None:
    """`metadata.log.max.snapshot.interval.ms` (KIP-876)."""
    files = MemoryFiles()
    async with running(files, snapshot_interval_ms=20) as node:
        await loop_until(lambda: bool(snapshots(files)))
        await node.controller.submit(write(feature("f")), None)
        last = node.controller.image.offset
        await loop_until(lambda: node.controller.log.start_offset > last)
        (name,) = snapshots(files)
        assert name.startswith(f"{last + 1:020}-")


@on_a_loop
async def test_a_snapshot_is_made_when_asked_for() -> None:
    files = MemoryFiles()
    async with running(files) as node:
        await node.controller.submit(write(feature("f")), None)
        end_offset = node.controller.image.offset + 1
        # A request while one is being made gets the same.
        first, second = await asyncio.gather(node.controller.snapshots.save_now(), node.controller.snapshots.save_now())
        assert first == second == SnapshotId(end_offset, ControllerEpoch(1))
        assert snapshots(files) == [f"{end_offset:020}-{1:010}.checkpoint"]
        assert (node.controller.log.start_offset, node.controller.log.end_offset) == (end_offset, end_offset)
    async with running(files) as node:
        assert node.controller.image.features["f"] == 1


@on_a_loop
async def test_without_room_for_a_snapshot_the_log_stays() -> None:
    """An observer would be sent to a snapshot that is not there."""
    files = MemoryFiles()
    async with running(files) as node:
        await node.controller.submit(write(feature("f")), None)
        end_offset = node.controller.log.end_offset
        files.capacity_bytes = files.total_bytes("/") - files.free_bytes("/")
        assert await node.controller.snapshots.save_now() is None
        assert (node.controller.log.start_offset, node.controller.log.end_offset) == (0, end_offset)
        files.capacity_bytes = None
        assert await node.controller.snapshots.save_now() == SnapshotId(end_offset, ControllerEpoch(1))


def large_config(number: int) -> ConfigRecord:
    return ConfigRecord(resource_type=32, resource_name="group", name=f"key{number}", value="x" * 30_000)


def feature(name: str, level: int = 1) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=level)


def test_the_broker_that_a_node_was_before_is_fenced_when_it_is_only_a_controller_now() -> None:
    """Another process of it that is a broker may still register at once."""
    files = MemoryFiles()

    async def was_broker() -> None:
        async with running(files) as node:
            await node.controller.submit(write(BROKER), None)

    async def is_controller() -> None:
        def has_session(_image: MetadataImage, _request: None, context: DecisionContext) -> ControllerResult[bool]:
            return ControllerResult(records=(), response=context.has_live_session(NodeId(1)))

        async with running(files) as node:
            assert not node.controller.image.brokers[1].is_fenced
            assert not await node.controller.submit(has_session, None)
            watching = asyncio.ensure_future(node.controller.watch_sessions())
            # Virtual time passes: a session is nine seconds.
            await asyncio.sleep(20)
            watching.cancel()
            assert node.controller.image.brokers[1].is_fenced

    with VirtualLoop() as loop:
        loop.run(was_broker())
        loop.run(is_controller())
