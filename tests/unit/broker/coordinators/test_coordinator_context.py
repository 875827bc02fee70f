"""A coordinator's partition: what it loads, when it answers, and what becomes of it when its leadership goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import pytest
from produced_batches import produced

from penstock.broker.coordination.effects import Effect, Effects
from penstock.broker.coordination.ports import StateRecord
from penstock.broker.coordinators import coordinator_context, held_requests
from penstock.broker.coordinators.coordinator_context import CoordinatorContext, WaitingRequest
from penstock.broker.coordinators.coordinator_runtime import CoordinatorRuntime
from penstock.broker.network.rules.postponed import PostponedError
from penstock.broker.replicas.partition import Partition
from penstock.client.clock import wait_until
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.file_slice import FetchData
from penstock.storage.log.rules.config import LogConfig

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode

TOPIC = "__consumer_offsets"
COMMIT_TIMEOUT_MS = 100
MARKER_COMMIT = b"\0\0\0\1"


class Note(Effect, frozen=True):
    """One that only this kind of coordinator has."""

    text: str


class Recorder:
    """A state shard that remembers what it was told."""

    def __init__(self, log: CoordinatorContext[Recorder]) -> None:
        self.log = log
        self.effects = Effects()
        self.expired: list[Hashable] = []
        self.waiting: list[WaitingRequest[str]] = []
        self.fails_at = "nothing"
        self.replayed: list[tuple[int, bytes | None]] = []
        self.ended: list[tuple[int, bool]] = []
        self.is_loaded = False
        self.is_unloaded = False

    def is_superseded(self, key: bytes) -> bool:
        return key.startswith(b"latest")

    def replay(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int) -> None:  # noqa: ARG002 - the protocol's
        if key == b"garbage":
            raise CorruptData("garbage")
        self.replayed.append((offset, value))

    def replay_end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        self.ended.append((producer_id, is_commit))

    def on_loaded(self) -> None:
        self.is_loaded = True

    def on_timer(self, key: Hashable) -> None:
        self.expired.append(key)
        if key == self.fails_at:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def on_unloaded(self) -> None:
        self.is_unloaded = True
        for waiter in self.waiting:
            self.effects.reply(waiter, "gone")
        self.effects.schedule_timer("after the end", 10)


class World:
    def __init__(self, node: DataNode) -> None:
        self.node = node
        self.answers: list[ErrorCode] = []
        self.seen: list[str] = []
        self.coordinators: CoordinatorRuntime[Recorder] = CoordinatorRuntime(
            TOPIC, 1, lambda: node.image, self._make, loop=node.loop
        )
        node.on_internal_change = self.coordinators.on_leadership

    def _make(self, partition: Partition) -> CoordinatorContext[Recorder]:
        return CoordinatorContext(
            partition,
            Recorder,
            replies=self.node.produces,
            runtime=self.node.runtime,
            on_append=self.node.partitions.complete_fetches,
            load_bytes=200,
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
            apply_effect=self._apply_effect,
        )

    def _apply_effect(self, partition: CoordinatorContext[Recorder], effect: Effect) -> None:
        assert partition is self.coordinator()
        assert isinstance(effect, Note)
        self.seen.append(effect.text)

    def waiter(self, and_then: Callable[[], None] = lambda: None) -> WaitingRequest[str]:
        """Its response lies in `seen`; a request that follows is begun by `and_then`."""

        def respond(response: str) -> None:
            self.seen.append(response)
            and_then()

        return WaitingRequest(respond, lambda error: error.name)

    def settle(self) -> None:
        """Until all is loaded that is being loaded."""
        is_over = wait_until(self._is_settled, timeout_s=10, interval_s=0)
        assert is_over, "still loading"

    def _is_settled(self) -> bool:
        self.wait(1)
        return self.error() is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def wait(self, milliseconds: int) -> None:
        self.node.loop.run_until_complete(asyncio.sleep(milliseconds / 1000))

    def wait_until(self, condition: Callable[[], bool]) -> None:
        def holds() -> bool:
            self.wait(1)
            return condition()

        assert wait_until(holds, timeout_s=10, interval_s=0), "not within 10 s"

    def coordinator(self) -> CoordinatorContext[Recorder]:
        return self.coordinators.get("any")

    def error(self) -> ErrorCode:
        """What a request is told."""
        try:
            _ = self.coordinator().shard
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def write(self, value: bytes) -> int:
        return self.coordinator().append([StateRecord(b"key", value)])

    def reply(self) -> None:
        hold: Callable[[ErrorCode], None] = self.coordinator().reply_when_committed(
            self.answers.append, lambda error: error
        )
        hold(ErrorCode.NONE)


@pytest.fixture
def world(node: DataNode) -> World:
    return World(node)


def test_requests_wait_until_all_is_replayed(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC)
    world.settle()
    for number in range(20):
        world.write(b"%d" % number)
    first = world.coordinator().shard
    # A leadership that comes again is another one.
    topic_id = node.image.topics.by_name[TOPIC].topic_id
    assert topic_id is not None
    node.elect(TOPIC, 2)
    assert world.error() is ErrorCode.NOT_COORDINATOR
    assert first.is_unloaded
    node.elect(TOPIC, 1)
    assert world.error() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.settle()
    second = world.coordinator().shard
    assert second is not first
    assert second.is_loaded
    assert second.replayed == [(number, b"%d" % number) for number in range(20)]


def test_a_request_that_comes_while_all_is_replayed_goes_on_behind_it(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC)
    with pytest.raises(PostponedError) as raised:
        _ = world.coordinator().shard
    assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    told: list[ErrorCode] = []
    raised.value.wait(lambda: told.append(world.error()))
    world.wait_until(lambda: bool(told))
    assert told == [ErrorCode.NONE]


def get(world: World) -> PostponedError:
    with pytest.raises(PostponedError) as raised:
        world.coordinators.get("key")
    assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return raised.value


@pytest.fixture
def later(world: World) -> list[Partition]:
    """Leaderships of internal topics that are in the metadata, and have not had their turn yet."""
    waiting: list[Partition] = []
    world.node.on_internal_change = waiting.append
    return waiting


def test_a_request_that_comes_before_the_leadership_has_its_turn_goes_on_behind_it(
    world: World, node: DataNode, later: list[Partition]
) -> None:
    node.create_topic(TOPIC)
    told: list[ErrorCode] = []
    for _ in range(2):
        get(world).wait(lambda: told.append(world.error()))
    world.wait(1)
    assert told == []
    world.coordinators.on_leadership(later[-1])
    world.wait_until(lambda: len(told) == 2)
    assert set(told) <= {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE}
    world.settle()
    assert world.error() is ErrorCode.NONE


def test_a_leadership_whose_turn_is_late_and_one_that_does_not_come_are_told(
    world: World, node: DataNode, later: list[Partition], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_requests, "HOLD_S", 0.001)
    node.create_topic(TOPIC)
    told: list[ErrorCode] = []
    get(world).wait(lambda: told.append(world.error()))
    world.wait_until(lambda: bool(told))
    assert told == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    with pytest.raises(KafkaError) as late:
        world.coordinators.get("key")
    assert not isinstance(late.value, PostponedError)
    node.elect(TOPIC, 2)
    assert world.error() is ErrorCode.NOT_COORDINATOR
    world.coordinators.on_leadership(later[-1])
    # The next one is waited for again.
    node.elect(TOPIC, 1)
    get(world)


def test_nothing_waits_for_a_leadership_when_the_node_stops(
    world: World, node: DataNode, later: list[Partition]
) -> None:
    node.create_topic(TOPIC)
    told: list[ErrorCode] = []
    get(world).wait(lambda: told.append(world.error()))
    world.coordinators.unload_all()
    world.wait_until(lambda: bool(told))
    assert told == [ErrorCode.NOT_COORDINATOR]
    assert later


def test_a_request_that_waits_when_the_leadership_goes_is_told_so(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC)
    with pytest.raises(PostponedError) as raised:
        _ = world.coordinator().shard
    told: list[ErrorCode] = []
    raised.value.wait(lambda: told.append(world.error()))
    node.elect(TOPIC, 2)
    world.wait_until(lambda: bool(told))
    assert told == [ErrorCode.NOT_COORDINATOR]


def test_a_record_that_a_later_one_makes_needless_is_not_replayed(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC)
    world.settle()
    for number in range(20):
        world.coordinator().append(
            [StateRecord(b"latest", b"%d" % number), StateRecord(b"key", b"%d" % number), StateRecord(b"latest", b"x")]
        )
    node.elect(TOPIC, 2)
    node.elect(TOPIC, 1)
    world.settle()
    replayed = world.coordinator().shard.replayed
    assert replayed == [*((3 * number + 1, b"%d" % number) for number in range(20)), (59, b"x")]


def test_a_node_that_does_not_lead_coordinates_nothing(world: World, node: DataNode) -> None:
    assert world.error() is ErrorCode.NOT_COORDINATOR
    node.create_topic(TOPIC, leader=2, replicas=(1, 2))
    assert world.error() is ErrorCode.NOT_COORDINATOR


def test_a_reply_waits_for_what_was_appended_before_it(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC, replicas=(1, 2))
    world.settle()
    world.reply()
    assert world.answers == [ErrorCode.NONE]
    world.write(b"x")
    world.reply()
    assert world.answers == [ErrorCode.NONE]
    node.publish_isr(TOPIC, 1)
    assert world.answers == [ErrorCode.NONE, ErrorCode.NONE]


def test_what_was_loaded_and_is_not_committed_is_not_told(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC, leader=2, replicas=(1, 2))
    partition = node.hosted(TOPIC)
    partition.append_as_follower(memoryview(write_batch([Record(0, node.now_ms, b"key", b"x")], leader_epoch=0)), 0)
    node.elect(TOPIC, 1)
    world.settle()
    assert world.coordinator().shard.replayed == [(0, b"x")]
    world.reply()
    assert world.answers == []
    node.publish_isr(TOPIC, 1)
    assert world.answers == [ErrorCode.NONE]


def test_a_reply_that_rests_on_what_is_lost_says_so(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC, replicas=(1, 2))
    world.settle()
    world.write(b"x")
    world.reply()
    node.elect(TOPIC, 2)
    assert world.answers == [ErrorCode.NOT_COORDINATOR]


def test_a_reply_is_held_for_so_long_and_no_longer(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC, replicas=(1, 2))
    world.settle()
    world.write(b"x")
    world.reply()
    world.wait(2 * COMMIT_TIMEOUT_MS)
    assert world.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_an_append_that_too_few_replicas_would_have_is_refused(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC, replicas=(1, 2))
    world.settle()
    node.configure(TOPIC, min_insync_replicas=2)
    node.publish_isr(TOPIC, 1)
    with pytest.raises(KafkaError) as raised:
        world.write(b"x")
    assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert node.hosted(TOPIC).log.log_end_offset == 0


def fail_reads(monkeypatch: pytest.MonkeyPatch, count: int | None, error: Exception) -> list[int]:
    """Lets `count` reads of any log fail (None: all of them); returns the offsets that were asked for."""
    read = Partition.read
    asked: list[int] = []

    def fail(partition: Partition, offset: int, *rest: Any) -> FetchData:
        asked.append(offset)
        if count is None or len(asked) <= count:
            raise error
        return read(partition, offset, *rest)

    monkeypatch.setattr(Partition, "read", fail)
    return asked


def lead_again(node: DataNode) -> None:
    node.elect(TOPIC, 2)
    node.elect(TOPIC, 1)


@pytest.mark.parametrize(
    "error", [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "EMFILE"), RuntimeError("can't start new thread")]
)
def test_a_read_that_fails_is_tried_again_and_loading_begins_anew(
    world: World, node: DataNode, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(coordinator_context, "LOAD_RETRY_S", 0.001)
    node.create_topic(TOPIC)
    world.settle()
    for number in range(5):
        world.write(b"%d" % number)
    asked = fail_reads(monkeypatch, 3, error)
    lead_again(node)
    world.settle()
    assert world.coordinator().shard.replayed == [(number, b"%d" % number) for number in range(5)]
    assert asked[:4] == [0] * 4
    assert not node.hosted(TOPIC).is_leadership_given_up


def test_requests_wait_a_moment_and_are_told_while_loading_is_tried_again(
    world: World, node: DataNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.create_topic(TOPIC)
    world.settle()
    world.write(b"x")
    asked = fail_reads(monkeypatch, None, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    lead_again(node)
    world.wait_until(lambda: len(asked) >= 1)
    world.wait(1)
    assert world.error() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with pytest.raises(PostponedError) as early:
        _ = world.coordinator().shard
    told: list[ErrorCode] = []
    early.value.wait(lambda: told.append(world.error()))
    world.wait_until(lambda: bool(told))
    assert told == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS], "it takes too long"
    with pytest.raises(KafkaError) as late:
        _ = world.coordinator().shard
    assert not isinstance(late.value, PostponedError)
    node.elect(TOPIC, 2)
    assert world.error() is ErrorCode.NOT_COORDINATOR


def test_leadership_is_given_up_when_reads_fail_for_long_and_loading_is_tried_on(
    world: World, node: DataNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_context, "LOAD_RETRY_S", 0.001)
    monkeypatch.setattr(coordinator_context, "RESIGN_AFTER_S", 0.0)
    node.create_topic(TOPIC)
    world.settle()
    world.write(b"x")
    reported: list[Partition] = []
    node.on_damage = reported.append
    asked = fail_reads(monkeypatch, 5, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    lead_again(node)
    partition = node.hosted(TOPIC)
    world.wait_until(lambda: partition.is_leadership_given_up)
    assert partition.damage is None
    world.settle()
    assert len(asked) > 5
    assert reported == [partition], "once for a leadership; AssignmentsManager asks again"
    assert not partition.is_leadership_given_up
    assert world.coordinator().shard.replayed == [(0, b"x")]


def test_a_leadership_that_comes_again_is_not_given_up(
    world: World, node: DataNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_context, "RESIGN_AFTER_S", 0.0)
    node.create_topic(TOPIC)
    world.settle()
    world.write(b"x")
    fail_reads(monkeypatch, None, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    lead_again(node)
    partition = node.hosted(TOPIC)
    world.wait_until(lambda: partition.is_leadership_given_up)
    node.elect(TOPIC, 2)
    assert not partition.is_leadership_given_up
    node.elect(TOPIC, 1)
    assert not partition.is_leadership_given_up


def test_records_that_cannot_be_replayed_are_tried_again_by_a_new_machine_and_by_this_node_alone(
    world: World, node: DataNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All replicas have the same records: another leader would not get further."""
    monkeypatch.setattr(coordinator_context, "LOAD_RETRY_S", 0.001)
    monkeypatch.setattr(coordinator_context, "RESIGN_AFTER_S", 0.0)
    node.create_topic(TOPIC)
    world.settle()
    world.write(b"x")
    node.hosted(TOPIC).append(produced(write_batch([Record(0, node.now_ms, b"garbage", b"x")])), node.now_ms)
    replay = Recorder.replay
    refused: list[Recorder] = []
    is_over: list[bool] = []

    def fail(shard: Recorder, offset: int, key: bytes | None, value: bytes | None, producer_id: int) -> None:
        if key == b"garbage":
            if is_over:
                return
            refused.append(shard)
        replay(shard, offset, key, value, producer_id)

    monkeypatch.setattr(Recorder, "replay", fail)
    lead_again(node)
    world.wait_until(lambda: len(refused) >= 2)
    world.settle()
    assert world.error() is ErrorCode.NOT_COORDINATOR, "clients look for another one meanwhile"
    is_over.append(True)
    world.wait_until(lambda: world.error() is ErrorCode.NONE)
    assert len({id(shard) for shard in refused}) == len(refused)
    assert world.coordinator().shard.replayed == [(0, b"x")]
    assert node.hosted(TOPIC).damage is None


def test_the_end_of_a_transaction_is_replayed_in_its_place(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC, leader=2, replicas=(1, 2))
    records = write_batch(
        [Record(0, node.now_ms, b"key", b"x")],
        leader_epoch=0,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    marker = write_batch(
        [Record(1, node.now_ms, MARKER_COMMIT, b"\0\0\0\0\0\0")],
        leader_epoch=0,
        producer_id=7,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
    partition = node.hosted(TOPIC)
    partition.append_as_follower(memoryview(records), 0)
    partition.append_as_follower(memoryview(marker), 0)
    node.elect(TOPIC, 1)
    world.settle()
    shard = world.coordinator().shard
    assert shard.replayed == [(0, b"x")]
    assert shard.ended == [(7, True)]


def test_a_change_without_a_waiting_request_is_made_when_loading_is_over(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC)
    seen: list[bool] = []
    world.coordinator().run_when_loaded(lambda shard: seen.append(shard.is_loaded))
    assert seen == []
    world.settle()
    world.coordinator().run_when_loaded(lambda shard: seen.append(shard.is_loaded))
    assert seen == [True, True]


def test_timers_are_put_off_and_end_with_the_leadership(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC)
    world.settle()
    with world.coordinator().event() as shard:
        shard.effects.schedule_timer("put off", 20)
        shard.effects.schedule_timer("put off", 60)
        shard.effects.schedule_timer("between", 40)
        shard.effects.schedule_timer("cancelled", 20)
        shard.effects.cancel_timer("cancelled")
        shard.effects.cancel_timer("unknown")
    world.wait(150)
    assert shard.expired == ["between", "put off"]
    with world.coordinator().event():
        shard.effects.schedule_timer("a", 20)
    node.elect(TOPIC, 2)
    world.wait(100)
    assert shard.expired == ["between", "put off"]


def test_a_timer_that_fails_ends_nothing_else(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC)
    world.settle()
    with world.coordinator().event() as shard:
        shard.fails_at = "a"
        shard.effects.schedule_timer("a", 10)
        shard.effects.schedule_timer("b", 30)
    world.wait(100)
    assert shard.expired == ["a", "b"]


# Events and their effects.


def test_effects_are_applied_in_their_order_and_at_the_end_of_their_event(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC)
    world.settle()
    with world.coordinator().event() as shard:
        shard.effects.reply(world.waiter(), "first")
        shard.effects.add(Note("second"))
        shard.effects.reply(world.waiter(), "third")
        assert world.seen == []
    assert world.seen == ["first", "second", "third"]


def test_effects_of_an_event_that_raises_are_applied(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC)
    world.settle()

    def fail() -> None:
        with world.coordinator().event() as shard:
            shard.effects.reply(world.waiter(), "before the error")
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    with pytest.raises(KafkaError):
        fail()
    assert world.seen == ["before the error"]


def test_a_timer_that_fails_keeps_its_effects(world: World, node: DataNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.create_topic(TOPIC)
    world.settle()

    def fail(shard: Recorder, key: Hashable) -> None:
        shard.effects.add(Note(str(key)))
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    monkeypatch.setattr(Recorder, "on_timer", fail)
    with world.coordinator().event() as shard:
        shard.effects.schedule_timer("a", 10)
    world.wait(50)
    assert world.seen == ["a"]


def test_what_a_reply_brings_about_follows_the_event_that_replied(world: World, node: DataNode) -> None:
    """A client of whose requests one is answered: the next of its connection begins at once."""
    node.create_topic(TOPIC)
    world.settle()

    def next_request() -> None:
        with world.coordinator().event() as shard:
            shard.effects.add(Note("of the next request"))
        assert world.seen == ["answered"]

    with world.coordinator().event() as shard:
        shard.effects.reply(world.waiter(next_request), "answered")
        shard.effects.add(Note("of the first request"))
    assert world.seen == ["answered", "of the first request", "of the next request"]


def test_what_an_event_within_another_brings_about_waits_for_the_end_of_both(world: World, node: DataNode) -> None:
    """An append may move the high watermark: a response leaves, and the next request of its connection begins."""
    node.create_topic(TOPIC)
    world.settle()
    with world.coordinator().event() as shard:
        shard.effects.add(Note("first"))
        with world.coordinator().event():
            shard.effects.add(Note("second"))
        assert world.seen == []
        shard.effects.add(Note("third"))
    assert world.seen == ["first", "second", "third"]
    with world.coordinator().event():
        shard.effects.add(Note("fourth"))
    assert world.seen[3:] == ["fourth"]


def test_a_reply_of_an_event_waits_for_all_that_the_event_has_appended(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC, replicas=(1, 2))
    world.settle()
    with world.coordinator().event() as shard:
        shard.effects.reply(world.waiter(), "committed")
        world.write(b"x")
    assert world.seen == []
    node.publish_isr(TOPIC, 1)
    assert world.seen == ["committed"]


def test_a_response_that_cannot_be_made_is_an_error_and_holds_up_no_other(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC)
    world.settle()

    def respond(response: str) -> None:
        world.seen.append(str(int(response)))

    with world.coordinator().event() as shard:
        shard.effects.reply(WaitingRequest(respond, lambda _error: "-1"), "not a number")
        shard.effects.add(Note("next"))
    assert world.seen == ["-1", "next"]


def test_requests_that_wait_are_answered_when_the_leadership_goes_and_nothing_else_follows(
    world: World, node: DataNode
) -> None:
    node.create_topic(TOPIC)
    world.settle()
    with world.coordinator().event() as shard:
        shard.waiting.append(world.waiter())
    node.elect(TOPIC, 2)
    assert world.seen == ["gone"]
    world.wait(50)
    assert shard.expired == []


def test_a_leadership_that_goes_while_effects_are_applied_leaves_no_timer(
    world: World, node: DataNode, caplog: pytest.LogCaptureFixture
) -> None:
    node.create_topic(TOPIC)
    world.settle()
    with world.coordinator().event() as shard:
        shard.waiting.append(world.waiter())
        shard.effects.reply(world.waiter(lambda: node.elect(TOPIC, 2)), "answered")
        shard.effects.schedule_timer("a", 10)
        shard.effects.add(Note("not applied"))
    assert world.seen == ["answered", "gone"]
    world.wait(50)
    assert shard.expired == []
    assert "Execution of coordinator timer failed" not in caplog.text


def test_no_event_begins_while_all_is_replayed(world: World, node: DataNode) -> None:
    node.create_topic(TOPIC)
    with pytest.raises(KafkaError) as raised, world.coordinator().event():
        pass
    assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_key_is_looked_for_where_it_is_kept(world: World, node: DataNode) -> None:
    node.configs = LogConfig()
    node.create_topic(TOPIC, partition_count=4)
    world.settle()
    found = {world.coordinators.get(f"group{number}").partition.index for number in range(50)}
    assert found == {0, 1, 2, 3}
