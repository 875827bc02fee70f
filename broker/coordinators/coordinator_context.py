"""One partition of an internal topic that this node leads: its state shard, and what that needs of the node.

Kafka: `CoordinatorRuntime.CoordinatorContext`.

state     requests are answered with    entered by                left by
loading   COORDINATOR_LOAD_IN_PROGRESS  leadership that came      the whole log being replayed; `unload`
          (`held_requests.py`)
failed    NOT_COORDINATOR               records not replayed      the next attempt to load; `unload`
active    what the shard says         the end of loading        `unload`
unloaded  NOT_COORDINATOR               leadership that went      never: the next leadership is another object

Loading that fails begins anew, with a shard that knows nothing, for as long as the leadership lasts: descriptors,
memory or threads may be short for a moment, and a fail-over is when they are. A log that cannot be read for
`RESIGN_AFTER_S` is for another in-sync replica to coordinate; without one, loading is retried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records import EncodedRecords, Record, batch_of, write_batch
from ...quorum.raft.recent_times import RecentTimes
from ...storage.log.rules.control_records import write_end_transaction_marker
from ...storage.log.rules.transaction_verification import TransactionVerification
from ..coordination.coordinator_shard import CoordinatorShard
from ..coordination.effects import CancelTimer, Effect, Effects, Reply, ScheduleTimer, Waiter
from ..coordination.ports import StateRecord, TransactionProducer
from ..network.rules.postponed import PostponedError
from ..replicas.delayed_reply import WRITTEN_ERRORS, DelayedCommit, DelayedReply
from ..replicas.partition import Partition
from ..timing.purgatory import Purgatory
from ..timing.runtime import Runtime
from .coordinator_loader import CoordinatorLoader, ReadFailedError
from .coordinator_timers import CoordinatorTimers
from .held_requests import HeldRequests

logger = logging.getLogger(__name__)

ShardT = TypeVar("ShardT", bound=CoordinatorShard)
ResponseT = TypeVar("ResponseT")

LOAD_RETRY_S: Final = 0.1
"""Until loading that failed is tried again for the first time, twice as long each time after it."""
LOAD_RETRY_S_MAX: Final = 5.0
REPLAY_RETRY_S_MAX: Final = 60.0
"""The same where not a read fails but what is made of the records: each try replays all of them."""
RESIGN_AFTER_S: Final = 10.0
"""Of reads that fail: most shortages are over by then, and clients that wait for the coordinator give up after 60 s."""


class WaitingRequest(Waiter[ResponseT]):
    """`respond` receives the response, or what `answer_error` makes of an error."""

    __slots__ = ("answer_error", "respond")

    def __init__(self, respond: Callable[[ResponseT], None], answer_error: Callable[[ErrorCode], ResponseT]) -> None:
        self.respond = respond
        self.answer_error = answer_error


class CoordinatorEvent(Generic[ShardT]):
    """`CoordinatorContext.event`: one object for all events of a context, which knows how many of them are open."""

    __slots__ = ("_apply_effect", "_context", "_depth", "effects")

    def __init__(self, context: CoordinatorContext[ShardT], apply_effect: Callable[[Effect], None]) -> None:
        """`apply_effect` raises nothing."""
        self._context = context
        self._apply_effect = apply_effect
        self._depth = 0
        self.effects = Effects()
        """The shard's."""

    def __enter__(self) -> ShardT:
        shard = self._context.shard
        self._depth += 1
        return shard

    def __exit__(self, *_error: object) -> None:
        if self._depth > 1:
            self._depth -= 1
            return
        effects = self.effects
        try:
            while effects.collected:
                for effect in effects.take():
                    self._apply_effect(effect)
        finally:
            self._depth = 0


class CoordinatorContext(Generic[ShardT]):
    """Owned by `CoordinatorRuntime`, which makes it when the leadership of `partition` comes."""

    def __init__(
        self,
        partition: Partition,
        make_shard: Callable[[CoordinatorContext[ShardT]], ShardT],
        *,
        replies: Purgatory,
        runtime: Runtime,
        on_append: Callable[[Partition], None],
        load_bytes: int,
        commit_timeout_ms: int,
        load_times: RecentTimes | None = None,
        apply_effect: Callable[[CoordinatorContext[ShardT], Effect], None] | None = None,
    ) -> None:
        """`replies` are held there; it is looked at when the high watermark of `partition` moves. `on_append` lets
        followers fetch. `load_bytes` are read at a time, `commit_timeout_ms` is the longest that a reply is held.
        `load_times` takes how long loading took.
        `apply_effect` applies effects that only this kind of coordinator has."""
        self.partition = partition
        self.leader_epoch = partition.state.leader_epoch
        self._replies = replies
        self._loop = runtime.loop
        self._wall_clock_ms = runtime.wall_clock_ms
        self._on_append = on_append
        self._commit_timeout_ms = commit_timeout_ms
        # All that the shard knows of stands before this offset.
        self._end_offset = partition.log.log_end_offset
        self._loader = CoordinatorLoader(partition, runtime.loop, load_bytes)
        self._timers = CoordinatorTimers(runtime.loop, self._on_timer)
        self._load_times = RecentTimes() if load_times is None else load_times
        self._apply_other_effect = apply_effect
        self._event: CoordinatorEvent[ShardT] = CoordinatorEvent(self, self._apply_effect)
        self._make_shard = make_shard
        self._shard = self._new_shard()
        self._error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self._held = HeldRequests(runtime.loop)
        self._postponed: list[Callable[[ShardT], None]] = []
        self._loading: asyncio.Task[None] | None = runtime.loop.create_task(self._load())

    @property
    def shard(self) -> ShardT:
        """Raises KafkaError while it cannot be asked: a PostponedError if that may be over soon."""
        if self._error:
            if self._held.is_open:
                raise PostponedError(self._error, self._held.wait)
            raise KafkaError(self._error)
        return self._shard

    @property
    def is_active(self) -> bool:
        """Whether the shard can be asked. May be read in any thread."""
        return self._error is ErrorCode.NONE

    def event(self) -> CoordinatorEvent[ShardT]:
        """Use as `with partition.event() as shard:`: effects that the shard collects are applied at the end, in their
        order, after an error too.

        Entering it raises KafkaError while the shard cannot be asked. Effects of an event that begins within another
        one, or because of a reply of it, follow all effects of that.
        """
        return self._event

    def _apply_effect(self, effect: Effect) -> None:
        try:
            if isinstance(effect, Reply):
                waiter = effect.waiter
                assert isinstance(waiter, WaitingRequest)
                self._reply(waiter.respond, waiter.answer_error, effect.response)
            elif self._error and not effect.is_applied_when_unloaded:
                # Unloaded meanwhile: requests that wait receive their responses, and nothing is begun any more.
                return
            elif isinstance(effect, ScheduleTimer):
                self._timers.schedule(effect.key, effect.delay_ms)
            elif isinstance(effect, CancelTimer):
                self._timers.cancel(effect.key)
            else:
                assert self._apply_other_effect is not None, effect
                self._apply_other_effect(self, effect)
        except Exception:
            # The effects behind it belong to other requests.
            logger.exception(
                "Execution of coordinator effect failed: partition=%s effect=%s", self.partition.log.name, effect
            )
            if isinstance(effect, Reply) and isinstance(effect.waiter, WaitingRequest):
                self._answer_failure(effect.waiter)

    def _answer_failure(self, waiter: WaitingRequest[Any]) -> None:
        try:
            waiter.respond(waiter.answer_error(ErrorCode.UNKNOWN_SERVER_ERROR))
        except Exception:
            logger.exception("Failed to respond to coordinator request: partition=%s", self.partition.log.name)

    def _on_timer(self, key: Hashable) -> None:
        with self._event as shard:
            shard.on_timer(key)

    def _new_shard(self) -> ShardT:
        shard = self._make_shard(self)
        self._event.effects = shard.effects
        return shard

    def run_when_loaded(self, change: Callable[[ShardT], None]) -> None:
        """Makes a change without a waiting request, once loading is over. A failure is logged."""
        if self._loading is not None:
            self._postponed.append(change)
        elif self._error is ErrorCode.NONE:
            try:
                with self._event as shard:
                    change(shard)
            except KafkaError as error:
                logger.warning(
                    "Execution of coordinator event failed: partition=%s error=%s", self.partition.log.name, error
                )
            except Exception:
                logger.exception("Execution of coordinator event failed: partition=%s", self.partition.log.name)

    def unload(self) -> None:
        """The leadership has gone."""
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None
        if self.is_active:
            with self._event as shard:
                self._error = ErrorCode.NOT_COORDINATOR
                shard.on_unloaded()
        self._error = ErrorCode.NOT_COORDINATOR
        self._timers.cancel_all()
        self._held.release()

    # What the shard needs.

    def append(self, records: Sequence[StateRecord]) -> int:
        """As `ports.StateLog`."""
        now_ms = self._wall_clock_ms()
        batch = write_batch([Record(number, now_ms, record.key, record.value) for number, record in enumerate(records)])
        return self._append(batch, now_ms)

    def append_encoded(self, records: EncodedRecords) -> int:
        """As `ports.TransactionalStateLog`."""
        now_ms = self._wall_clock_ms()
        return self._append(batch_of(records, now_ms), now_ms)

    def append_in_transaction(self, records: EncodedRecords, producer: TransactionProducer) -> int:
        """As `ports.TransactionalStateLog`."""
        now_ms = self._wall_clock_ms()
        batch = batch_of(
            records,
            now_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            is_transactional=True,
        )
        return self._append(batch, now_ms, verification=producer.verification)

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        respond: Callable[[ErrorCode], None],
    ) -> None:
        """Writes down that a transaction has ended, and `respond`s when that is committed. Raises KafkaError, and then
        nothing was written."""
        with self._event as shard:
            now_ms = self._wall_clock_ms()
            marker = write_end_transaction_marker(
                producer_id, producer_epoch, is_commit=is_commit, coordinator_epoch=coordinator_epoch, now_ms=now_ms
            )
            self._append(marker, now_ms, transaction_version=transaction_version)
            shard.replay_end_transaction(producer_id, is_commit=is_commit)
        self.reply_when_committed(respond, lambda error: error)(ErrorCode.NONE)

    def _append(
        self,
        batch: bytes,
        now_ms: int,
        *,
        verification: TransactionVerification | None = None,
        transaction_version: int = 0,
    ) -> int:
        """Returns the offset of the first record. Raises KafkaError, of the errors that clients of a coordinator know,
        and then nothing was appended."""
        partition = self.partition
        try:
            if partition.error is not ErrorCode.NONE or partition.state.leader_epoch != self.leader_epoch:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            info = partition.append_of_coordinator(
                batch, now_ms, verification=verification, transaction_version=transaction_version
            )
        except KafkaError as error:
            raise KafkaError(WRITTEN_ERRORS.get(error.code, error.code), error.message) from error
        self._end_offset = info.last_offset + 1
        self._on_append(partition)
        return info.first_offset

    def when_committed(self, proceed: Callable[[], None]) -> None:
        """Calls `proceed` when all is committed that was appended by now; at once if it is, never if it never is."""
        if self.partition.state.high_watermark >= self._end_offset:
            proceed()
        else:
            self._await_commit(self._end_offset, proceed)

    def _await_commit(self, end_offset: int, proceed: Callable[[], None]) -> None:
        def settle(error: ErrorCode) -> None:
            if error is ErrorCode.NONE and self._error is ErrorCode.NONE:
                proceed()

        def on_expired() -> None:
            if self._error is ErrorCode.NONE:
                self._await_commit(end_offset, proceed)

        operation = DelayedCommit(self.partition, end_offset, self.leader_epoch, settle, on_expired)
        self._replies.watch(operation, (self.partition,), self._commit_timeout_ms)

    def reply_when_committed(
        self, respond: Callable[[ResponseT], None], answer_error: Callable[[ErrorCode], ResponseT]
    ) -> Callable[[ResponseT], None]:
        """A reply for the shard: `respond` is called when all is committed that it had appended when it replied, or
        with what `answer_error` makes of the error if that never happens."""
        return partial(self._reply, respond, answer_error)

    def _reply(
        self,
        respond: Callable[[ResponseT], None],
        answer_error: Callable[[ErrorCode], ResponseT],
        response: ResponseT,
    ) -> None:
        partition = self.partition
        if partition.state.high_watermark >= self._end_offset:
            respond(response)
            return

        def settle(error: ErrorCode) -> None:
            respond(response if error is ErrorCode.NONE else answer_error(error))

        operation = DelayedReply(partition, self._end_offset, self.leader_epoch, settle)
        self._replies.watch(operation, (partition,), self._commit_timeout_ms)

    # Loading.

    async def _load(self) -> None:
        started_s = self._loop.time()
        failing_since_s: float | None = None
        retry_s = LOAD_RETRY_S
        said = ""
        while True:
            try:
                self._activate(await self._loader.load(self._shard), started_s)
                return
            except ReadFailedError as error:
                failure = str(error)
                retry_s_max = LOAD_RETRY_S_MAX
                now_s = self._loop.time()
                failing_since_s = now_s if failing_since_s is None else failing_since_s
                if now_s - failing_since_s >= RESIGN_AFTER_S and not self.partition.is_leadership_given_up:
                    logger.error("Failed to load metadata, resigning leadership: partition=%s", self.partition.log.name)
                    self.partition.give_up_leadership()
            except Exception as error:
                failure = repr(error)
                retry_s_max = REPLAY_RETRY_S_MAX
                # It may last: clients look for another coordinator, and lists leave this partition out.
                self._error = ErrorCode.NOT_COORDINATOR
                self._held.release()
            if failure != said:
                said = failure
                logger.error(
                    "Failed to load metadata, retrying: partition=%s error=%s",
                    self.partition.log.name,
                    failure,
                    exc_info=retry_s_max == REPLAY_RETRY_S_MAX,
                )
            await asyncio.sleep(retry_s)
            retry_s = min(2 * retry_s, retry_s_max)
            self._error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            self._timers.cancel_all()
            self._shard = self._new_shard()

    def _activate(self, record_count: int, started_s: float) -> None:
        """Raises what the shard raises."""
        self._end_offset = self.partition.log.log_end_offset
        self._error = ErrorCode.NONE
        with self._event as shard:
            try:
                shard.on_loaded()
            except Exception:
                self._error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                shard.on_unloaded()
                raise
        self._loading = None
        now_s = self._loop.time()
        self._load_times.note(round(1000 * (now_s - started_s)), int(1000 * now_s))
        self.partition.keep_leadership()
        for change in self._postponed:
            self.run_when_loaded(change)
        self._postponed.clear()
        self._held.release()
        logger.log(
            logging.INFO if record_count else logging.DEBUG,
            "Finished loading of metadata: partition=%s leader_epoch=%d records=%d milliseconds=%d",
            self.partition.log.name,
            self.leader_epoch,
            record_count,
            (self._loop.time() - started_s) * 1000,
        )
