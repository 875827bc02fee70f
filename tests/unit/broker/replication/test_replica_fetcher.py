"""A follower with two requests on their way, and one that asks its leader where to go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from waiting import loop_until

from penstock.broker.replication import offset_resets, replica_fetcher
from penstock.broker.replication.leader_offsets import LeaderOffsets
from penstock.broker.replication.replica_fetcher import ReplicaFetcher
from penstock.broker.replication.rules.fetcher_config import FetcherConfig
from penstock.broker.replication.rules.replication_quota import ReplicationQuota
from penstock.broker.timing.runtime import Runtime
from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId
from penstock.protocol.replica_fetch import FetchedPartition, FollowedPartition, ReplicaFetchResponse
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.producer_entry import ProducerEntry
from penstock.storage.log.rules.tiered_history import TieredHistory

LEADER, FOLLOWER = 1, 2
SESSION = 8
DEADLINE_S = 10.0
PRODUCERS = [ProducerEntry(7)]


class Partition:
    """Of the log there is only the number of records."""

    def __init__(self, index: int, end_offset: int = 0, *, must_sync: bool = False) -> None:
        """`must_sync`: with `flush.messages=1` what is appended does not count before `finish_sync`."""
        self.topic, self.topic_id, self.index = "flights", UUID(int=7), index
        self.log_end_offset = self.synced_offset = end_offset
        self.must_sync = must_sync
        self.is_synced = True
        self.leader_epoch = 3
        self.damage: object | None = None
        self.rechecks = 0
        self.on_synced: Callable[[bool], None] | None = None

    @property
    def state(self) -> Any:
        counted = self.synced_offset if self.must_sync else self.log_end_offset
        return SimpleNamespace(leader_epoch=self.leader_epoch, log_end_offset=counted, high_watermark=0)

    @property
    def log(self) -> Any:
        return SimpleNamespace(
            log_end_offset=self.log_end_offset,
            log_start_offset=0,
            damage=self.damage,
            config=LogConfig(),
            leader_epochs=SimpleNamespace(latest_epoch=3, end_offset_for=lambda epoch, end_offset: (epoch, end_offset)),
        )

    def append_as_follower(self, records: memoryview, _now_ms: int) -> bool:
        """The first eight bytes are the offset at which they begin, each of the others is a record."""
        base_offset = int.from_bytes(records[:8], "big")
        assert base_offset == self.log_end_offset, "the leader's answer to another place"
        self.log_end_offset += len(records) - 8
        self.is_synced = not self.must_sync
        return False

    def finish_sync(self) -> None:
        self.synced_offset, self.is_synced = self.log_end_offset, True
        assert self.on_synced is not None, "the fetcher waits for it"
        self.on_synced(False)

    def on_leader_offsets(self, **_: int) -> bool:
        return False

    def recheck(self) -> bool:
        self.rechecks += 1
        return self.damage is not None


class Sent(NamedTuple):
    correlation_id: int
    partitions: Sequence[tuple[bytes, int, FollowedPartition]]


class Link:
    """The leader's end of the connection."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.on_answer: Callable[[Any], None]
        self.on_lost: Callable[[str], None]
        # Of the leaders whose side did.
        self.closed_by_peer: list[int] = []

    def open(self, _connection: object, *, on_answer: Callable[[Any], None], on_lost: Callable[[str], None]) -> Link:
        self.on_answer, self.on_lost = on_answer, on_lost
        return self

    def send(self, request: Sent) -> None:
        self.sent.append(request)

    def release(self) -> None:
        """The test gives the next answer itself."""

    def close(self, reason: str) -> None:
        assert reason in ("", "this node follows it no more"), reason
        self.on_lost(reason)

    async def request(self, number: int) -> Sent:
        """The one that is sent as number `number`, from 0."""
        await loop_until(lambda: len(self.sent) > number)
        return self.sent[number]

    async def answer(self, number: int, *partitions: FetchedPartition) -> None:
        request = await self.request(number)
        topics = [(UUID(int=7).bytes, list(partitions))] if partitions else []
        self.on_answer((request.correlation_id, ReplicaFetchResponse(0, SESSION, topics)))

    async def told(self, number: int) -> list[tuple[int, int]]:
        """Which partitions that request tells of, and where they end."""
        return [(index, position.fetch_offset) for _, index, position in (await self.request(number)).partitions]


class Followed:
    """What becomes of the follower's logs."""

    def __init__(self) -> None:
        self.cuts: list[tuple[int, int]] = []
        self.restarts: list[tuple[int, int]] = []

    def truncate(self, offsets: Mapping[Any, int]) -> None:
        for partition, offset in offsets.items():
            self.cuts.append((partition.log_end_offset, offset))
            partition.log_end_offset = offset

    def restart(
        self, partition: Any, offset: int, producers: Iterable[ProducerEntry], tiered: TieredHistory | None = None
    ) -> None:
        assert producers == PRODUCERS
        assert tiered is None
        self.restarts.append((partition.log_end_offset, offset))
        partition.log_end_offset = offset

    def complete_waiting(self, _hosted: Any) -> None:
        raise AssertionError("nothing was committed")


def records(index: int, base_offset: int, count: int) -> FetchedPartition:
    return FetchedPartition(index, 0, 0, 0, memoryview(base_offset.to_bytes(8, "big") + bytes(count)), None)


def refused(index: int, error: ErrorCode) -> FetchedPartition:
    return FetchedPartition(index, error, -1, -1, memoryview(b""), None)


def diverging(index: int, end_offset: int) -> FetchedPartition:
    """The leader's epoch 2 ends there."""
    return FetchedPartition(index, 0, -1, -1, memoryview(b""), (LeaderEpoch(2), end_offset))


@asynccontextmanager
async def fetching(link: Link, followed: Followed, *partitions: Any) -> AsyncIterator[ReplicaFetcher]:
    async def connect(*_: object, **__: object) -> Any:
        return SimpleNamespace(peer="leader"), SimpleNamespace(node_id=LEADER)

    peers: Any = SimpleNamespace(connect=connect)
    loop = asyncio.get_running_loop()
    runtime = Runtime(
        loop=loop,
        wall_clock_ms=lambda: 0,
        steady_clock_ms=lambda: 0,
        monotonic_ms=lambda: int(loop.time() * 1000),
        random=Random(1),
        fail=pytest.fail,
    )
    fetcher = ReplicaFetcher(
        NodeId(LEADER),
        node_id=NodeId(FOLLOWER),
        partitions=followed,
        peers=peers,
        address=lambda: ("leader", 9092),
        broker_epoch=lambda: BrokerEpoch(1),
        config=FetcherConfig(
            wait_ms_max=500,
            bytes_min=1,
            bytes_max=1_000,
            response_bytes_max=1_000,
            backoff_ms=1_000,
            timeout_ms=30_000,
        ),
        quota=ReplicationQuota(window_count=2, window_ms=1_000),
        on_closed_by_peer=link.closed_by_peer.append,
        runtime=runtime,
    )
    for partition in partitions:
        fetcher.follow(partition)
    task = asyncio.create_task(fetcher.run())
    try:
        yield fetcher
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """In virtual time: a busy machine passes no time between two steps, in which the follower would go on."""
    with VirtualLoop() as loop:
        loop.run(scenario)


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Link:
    link = Link()

    def encode(correlation_id: int, *_: object, partitions: Any, **__: object) -> Sent:
        return Sent(correlation_id, partitions)

    monkeypatch.setattr(replica_fetcher, "FetcherLink", link.open)
    monkeypatch.setattr(replica_fetcher, "encode_replica_fetch", encode)
    monkeypatch.setattr(replica_fetcher, "decode_replica_fetch_response", lambda answer: answer)
    return link


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[asyncio.Future[LeaderOffsets]]:
    """The questions for what the leader has, to be answered by the test."""
    questions: list[asyncio.Future[LeaderOffsets]] = []

    async def ask(*_: object, **__: object) -> LeaderOffsets:
        questions.append(asyncio.get_running_loop().create_future())
        return await questions[-1]

    monkeypatch.setattr(offset_resets, "ask_leader_offsets", ask)
    return questions


def test_what_comes_again_behind_a_poll_is_not_taken_for_news(link: Link, caplog: pytest.LogCaptureFixture) -> None:
    first, second = Partition(0), Partition(1)
    of_second: Any = second

    async def follow() -> None:
        async with fetching(link, Followed(), first) as fetcher:
            await link.answer(0)
            await link.request(1)
            fetcher.follow(of_second)
            assert await link.told(2) == [(1, 0)]
            await link.answer(1, records(0, 0, 2))
            assert await link.told(3) == [(0, 2)]
            # It was made before the leader heard of the third.
            await link.answer(2, records(0, 0, 2), records(1, 0, 1))
            assert await link.told(4) == [(1, 1)]
            await link.answer(3, records(0, 2, 1))
            assert await link.told(5) == [(0, 3)]

    run(follow())
    assert (first.log_end_offset, second.log_end_offset) == (3, 1)
    assert "Error for partition" not in caplog.text


def test_next_epoch_of_the_same_leader_is_asked_for_at_once(link: Link) -> None:
    """The poll under way is of the earlier epoch, and may last."""
    partition: Any = Partition(0)

    async def follow() -> None:
        async with fetching(link, Followed(), partition) as fetcher:
            await link.answer(0)
            await link.request(1)
            partition.leader_epoch = 4
            fetcher.follow(partition)
            await asyncio.sleep(0)
            ((_, _, position),) = link.sent[-1].partitions
            assert (len(link.sent), position.leader_epoch) == (3, 4)

    run(follow())


def test_what_is_not_synced_does_not_count_for_the_leader(link: Link) -> None:
    """With `flush.messages=1` neither the next request nor one that another partition makes necessary tells of it."""
    partition, other = Partition(0, must_sync=True), Partition(1)

    async def follow() -> None:
        async with fetching(link, Followed(), partition) as fetcher:
            added: Any = other
            await link.answer(0, records(0, 0, 2))
            fetcher.follow(added)
            # A new connection tells of all partitions, whatever is under way.
            assert fetcher._position_of((partition.topic_id.bytes, 0)).fetch_offset == 0
            partition.finish_sync()
            assert await link.told(1) == [(0, 2), (1, 0)]

    run(follow())


def test_log_that_begins_where_the_leaders_does_and_is_not_vouched_for_begins_anew(
    link: Link, asked: list[asyncio.Future[LeaderOffsets]]
) -> None:
    partition, followed = Partition(0, end_offset=6), Followed()

    async def follow() -> None:
        async with fetching(link, followed, partition):
            await link.answer(0, refused(0, ErrorCode.OFFSET_OUT_OF_RANGE))
            await loop_until(lambda: asked)
            asked[0].set_result(LeaderOffsets(log_start_offset=6, log_end_offset=9, producers=PRODUCERS))
            await loop_until(lambda: followed.restarts)

    run(follow())
    assert followed.restarts == [(6, 6)]


def test_log_that_ends_where_the_leader_has_nothing_is_cut_there(
    link: Link, asked: list[asyncio.Future[LeaderOffsets]]
) -> None:
    partition, followed = Partition(0, end_offset=9), Followed()

    async def follow() -> None:
        async with fetching(link, followed, partition):
            await link.answer(0, refused(0, ErrorCode.OFFSET_OUT_OF_RANGE))
            await loop_until(lambda: asked)
            asked[0].set_result(LeaderOffsets(log_start_offset=0, log_end_offset=6, producers=PRODUCERS))
            await loop_until(lambda: followed.cuts)
            assert await link.told(1) == [(0, 6)]

    run(follow())
    assert followed.cuts == [(9, 6)]


def test_log_that_the_leader_refuses_and_has_waits_longer_each_time(
    link: Link, asked: list[asyncio.Future[LeaderOffsets]], caplog: pytest.LogCaptureFixture
) -> None:
    """A flipped bit in the epoch of its last batch makes such a log: it was fetched without a pause, a warning each."""
    partition, followed = Partition(0, end_offset=4), Followed()
    asked_s: list[float] = []

    async def follow() -> None:
        loop = asyncio.get_running_loop()
        async with fetching(link, followed, partition):
            for number in range(5):
                await link.answer(number, refused(0, ErrorCode.OFFSET_OUT_OF_RANGE))
                await loop_until(lambda number=number: len(asked) > number)  # type: ignore[misc]
                asked_s.append(loop.time())
                asked[number].set_result(LeaderOffsets(log_start_offset=0, log_end_offset=9, producers=PRODUCERS))
            await link.request(5)

    with caplog.at_level(logging.INFO, replica_fetcher.__name__):
        run(follow())
    waits_s = [later - earlier for earlier, later in pairwise(asked_s)]
    assert waits_s == sorted(waits_s)
    assert waits_s[-1] >= 4 * waits_s[0] > 0
    (said,) = [one for one in caplog.messages if one.startswith("Error for partition: ")]
    assert said.endswith("reason=the leader refuses its offset, though it is within its log, 0 to 9")
    assert (followed.cuts, followed.restarts, partition.log_end_offset) == ([], [], 4)


def test_a_log_that_cannot_be_cut_is_not_fetched_before_it_is(link: Link) -> None:
    """The leader would count it as one that has everything, and it could be elected, and takes nothing in."""
    partition, other = Partition(0, 9), Partition(1)

    class Failing(Followed):
        def truncate(self, offsets: Mapping[Any, int]) -> None:
            super().truncate(offsets)
            partition.damage = "the disk"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk")

    async def follow() -> None:
        async with fetching(link, Failing(), partition, other) as fetcher:
            assert await link.told(0) == [(0, 9), (1, 0)]
            await link.answer(0, diverging(0, 6), records(1, 0, 1))
            assert await link.told(1) == [(1, 1)]
            await loop_until(lambda: partition.rechecks == 3)
            assert fetcher.stalled_count == 1
            # Another leader is told no sooner.
            await link.answer(1, records(1, 1, 1))
            assert await link.told(2) == [(1, 2)]
            fetcher.unfollow(partition)  # type: ignore[arg-type]
            fetcher.follow(partition)  # type: ignore[arg-type]
            await loop_until(lambda: partition.rechecks == 4)
            partition.damage = None
            await link.answer(2, records(1, 2, 1))
            told = [index for number in (3, 4) for index in await link.told(number)]
            assert told == [(1, 3), (0, 6)]

    run(follow())


def test_a_log_that_goes_offline_as_it_is_begun_anew_holds_up_no_other(
    link: Link, asked: list[asyncio.Future[LeaderOffsets]]
) -> None:
    partition, other = Partition(0, 9), Partition(1)
    fetchers: list[ReplicaFetcher] = []

    class Failing(Followed):
        def restart(
            self, partition: Any, offset: int, producers: Iterable[ProducerEntry], tiered: TieredHistory | None = None
        ) -> None:
            super().restart(partition, offset, producers, tiered)
            partition.damage = "the disk"
            fetchers[0].unfollow(partition)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk")

    async def follow() -> None:
        async with fetching(link, Failing(), partition, other) as fetcher:
            fetchers.append(fetcher)
            await link.answer(0, refused(0, ErrorCode.OFFSET_OUT_OF_RANGE), records(1, 0, 1))
            await loop_until(lambda: asked)
            asked[0].set_result(LeaderOffsets(log_start_offset=20, log_end_offset=30, producers=PRODUCERS))
            await loop_until(lambda: partition.damage is not None)
            assert await link.told(1) == [(1, 1)]
            await link.answer(1, records(1, 1, 1))
            assert await link.told(2) == [(1, 2)]
            assert fetcher.stalled_count == 0

    run(follow())


@pytest.mark.parametrize("count", [1, 50])
def test_logs_that_one_answer_cuts_are_one_line(link: Link, caplog: pytest.LogCaptureFixture, count: int) -> None:
    partitions, followed = [Partition(index, end_offset=9) for index in range(count)], Followed()

    async def follow() -> None:
        async with fetching(link, followed, *partitions):
            await link.answer(0, *(diverging(index, 6) for index in range(count)))
            await loop_until(lambda: len(followed.cuts) == count)

    with caplog.at_level(logging.DEBUG, replica_fetcher.__name__):
        run(follow())
    one = "Truncating partition: topic=flights partition=0 leader=1 leader_epoch=3 from=9 to=6 high_watermark=0"
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert said == [one if count == 1 else "Truncating partitions: leader=1 partitions=50 offsets=150"]
    assert one in caplog.messages
    assert sum(message.startswith("Truncating partition: ") for message in caplog.messages) == count


def test_few_questions_are_asked_at_a_time(link: Link, asked: list[asyncio.Future[LeaderOffsets]]) -> None:
    """Each has a connection of its own, and a node with empty disks has one for every partition."""
    partitions = [Partition(index) for index in range(100)]

    async def tell(number: int) -> None:
        await loop_until(lambda: len(asked) > number)
        assert sum(not question.done() for question in asked) <= offset_resets.QUESTIONS_MAX
        asked[number].set_result(LeaderOffsets(log_start_offset=7, log_end_offset=9, producers=PRODUCERS))

    async def follow() -> None:
        async with fetching(link, Followed(), *partitions):
            await link.answer(0, *(refused(index, ErrorCode.OFFSET_OUT_OF_RANGE) for index in range(100)))
            await loop_until(lambda: len(asked) == offset_resets.QUESTIONS_MAX)
            for number in range(100):
                await tell(number)
            await loop_until(lambda: all(partition.log_end_offset == 7 for partition in partitions))

    run(follow())


def test_what_the_leader_had_before_the_follower_went_on_cuts_nothing(
    link: Link, asked: list[asyncio.Future[LeaderOffsets]]
) -> None:
    """The question was long on its way, and the partition was fetched again meanwhile: it may be in the ISR by now,
    and what it has committed."""
    partition, followed = Partition(0, end_offset=6), Followed()

    async def follow() -> None:
        async with fetching(link, followed, partition):
            await link.answer(0, refused(0, ErrorCode.OFFSET_OUT_OF_RANGE))
            await loop_until(lambda: asked)
            await link.answer(1, records(0, 6, 4))
            assert await link.told(2) == [(0, 10)]
            asked[0].set_result(LeaderOffsets(log_start_offset=0, log_end_offset=6, producers=PRODUCERS))
            await link.answer(2, records(0, 10, 1))
            assert await link.told(3) == [(0, 11)]

    run(follow())
    assert followed.cuts == []


def test_consumers_of_a_follower_that_lags_hear_of_each_append(link: Link) -> None:
    """That it is committed the leader has said before."""

    class Lagging(Partition):
        def append_as_follower(self, records: memoryview, now_ms: int) -> bool:
            super().append_as_follower(records, now_ms)
            return True

    class Watched(Followed):
        def complete_waiting(self, partition: Any) -> None:
            heard.append(partition.log_end_offset)

    heard: list[int] = []

    async def follow() -> None:
        async with fetching(link, Watched(), Lagging(0)):
            await link.answer(0, records(0, 0, 3))
            await link.answer(1, records(0, 3, 2))
        assert heard == [3, 5]

    run(follow())


def test_a_connection_that_the_leader_closes_is_told_and_one_that_is_let_go_is_not(link: Link) -> None:
    async def scenario() -> None:
        async with fetching(link, Followed(), Partition(0)):
            await link.request(0)
            assert not link.closed_by_peer
            link.on_lost("it closed the connection")
            assert link.closed_by_peer == [LEADER]
            # The next connection begins a session of its own.
            await link.request(1)
        assert link.closed_by_peer == [LEADER]

    run(scenario())
