"""The controller: takes requests that change metadata, and answers when the change is committed and replayed here.

Kafka: `QuorumController`.

A decision is made on the committed image plus this controller's own records that are not committed yet (the overlay),
so that requests need not wait for each other. The transitions of a controller:

| state            | leaves by                                                    | to                   |
|------------------|--------------------------------------------------------------|----------------------|
| standby          | this node becomes leader of an epoch                         | claiming             |
| claiming         | the first entry of that epoch is committed and replayed      | active               |
| claiming, active | the leadership changes: the overlay is dropped, and waiting  | standby, or claiming |
|                  | requests are answered NOT_CONTROLLER                         |                      |
| any              | the engine fails                                             | failed               |

Nothing is decided or answered but in the active state: before the own epoch's first entry is replayed, entries of
earlier epochs may still be missing from the image.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NO_CONTROLLER_EPOCH, ControllerEpoch, NodeId
from ..decisions.change import Change, eligible_elections, image_after, prepare, split_commands, unclean_elections
from ..decisions.context import ControllerConfig, ControllerResult, Decision, DecisionContext
from ..decisions.decision_cost import INLINE_MAX, weight
from ..decisions.heartbeats import fence_expired
from ..decisions.mutation_quota import MutationQuota, throttled
from ..fencing.broker_sessions import BrokerSessions
from ..fencing.broker_watcher import BrokerWatcher, NoWatcher
from ..metadata.image import MetadataImage
from ..metadata.loader import MetadataLoader
from ..metadata.metadata_log import CommittedEntry, MetadataLog, SnapshotId
from ..metadata.publishers import Publishers
from ..metadata.record_codec import encode_entry, encode_record
from ..metadata.records import DIRECTORY_LOST, AbortTransactionRecord, MetadataRecord
from ..metadata.snapshot_schedule import SnapshotSchedule
from ..permissions.requester import Requester
from ..raft.consensus import (
    CommitPosition,
    Consensus,
    ConsensusFailed,
    NotLeader,
    OutcomeUnknown,
    Snapshot,
    VoterStatus,
)
from ..raft.recent_times import RecentTimes
from .replay import Replay
from .snapshot_generator import SnapshotGenerator

if TYPE_CHECKING:
    from random import Random

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")

# How late the end of a session may be noticed, as a part of it.
_CHECKS_PER_SESSION = 8
# DescribeQuorum omits an observer that is silent for longer, as in Apache Kafka.
_OBSERVER_SILENCE_MS_MAX = 300_000

logger = logging.getLogger(__name__)


class _Decided(NamedTuple, Generic[ResponseT]):
    """What was decided, the last of its proposals, and the quota that counted it."""

    result: ControllerResult[ResponseT]
    last: "asyncio.Future[CommitPosition] | None"
    quota: MutationQuota | None


class Controller:
    """Part of every voter; at most one of them is active."""

    def __init__(
        self,
        consensus: Consensus,
        publishers: Publishers,
        *,
        config: ControllerConfig,
        bootstrap: Sequence[MetadataRecord],
        random: "Random",
        loop: asyncio.AbstractEventLoop,
        wall_clock_ms: Callable[[], int],
        on_failure: Callable[[str], None],
        find_quota: Callable[[Requester], MutationQuota | None] = lambda _: None,
    ) -> None:
        """Stand by. `bootstrap` is written when the log is empty;

        `on_failure` receives the sentence with which the node must stop. `find_quota` knows how many partitions a
        client may have created and deleted, from what was counted here.
        """
        self._consensus = consensus
        self._loader = MetadataLoader(publishers)
        self._replay = Replay(self._loader, take=self._take, loop=loop, on_failure=on_failure)
        self.log = MetadataLog()
        """What brokers fetch."""
        self._grown: asyncio.Future[None] = loop.create_future()
        self._config = config
        self._bootstrap = tuple(bootstrap)
        self._random = random
        self._loop = loop
        self._wall_clock_ms = wall_clock_ms
        self._on_failure = on_failure
        self._find_quota = find_quota
        self._sessions = BrokerSessions(config.broker_session_timeout_ms)
        self._watcher: BrokerWatcher = NoWatcher()
        self._former_leader_id: NodeId | None = None
        self._claimed_epoch: ControllerEpoch | None = None
        self._activated: asyncio.Future[None] = loop.create_future()
        self._overlay: MetadataImage = self._loader.image
        self._pending_count = 0
        self._last_proposal: asyncio.Future[CommitPosition] | None = None
        self.commit_times = RecentTimes()
        """From proposal to commit."""
        self.timed_out_session_count = 0
        self.seen_leader_count = 0
        """Changes to a known leader of the quorum, since start."""
        self.unclean_election_count = 0
        """Decided here, since start."""
        self.eligible_election_count = 0
        """Leaders from the ELR, decided here, since start."""
        self._background_decision: asyncio.Future[None] | None = None
        self.snapshots = SnapshotGenerator(
            consensus,
            self._loader,
            self.log,
            SnapshotSchedule(
                max_bytes=config.snapshot_bytes, interval_ms=config.snapshot_interval_ms, now_ms=self._now_ms()
            ),
            is_behind=lambda: self._replay.is_behind,
            loop=loop,
            now_ms=self._now_ms,
        )

    @property
    def image(self) -> MetadataImage:
        """The committed image, as the publishers saw it last."""
        return self._loader.image

    @property
    def is_active(self) -> bool:
        return self._claimed_epoch is not None and self._activated.done()

    @property
    def has_fresh_quorum(self) -> bool:
        """Whether this node is the active controller, and a majority of the voters said so just now."""
        return self.is_active and self._consensus.has_fresh_quorum

    def watch(self, watcher: BrokerWatcher) -> None:
        """Let `watcher` hear of the brokers; before `start`."""
        self._watcher = watcher

    async def start(self) -> None:
        """Replay what this node has, then take part. Raises ConsensusFailed."""
        await self._consensus.start(self)
        self._loader.catch_up()

    async def stop(self) -> None:
        """Stop taking part; what waits is answered first where it can be."""
        self.snapshots.close()
        await self._consensus.stop()
        await self._replay.stop()
        await self.snapshots.wait_closed()

    async def wait_active(self) -> None:
        """Wait until this node is the active controller and the cluster's first records are committed."""
        await asyncio.shield(self._activated)
        if self._last_proposal is not None:
            await asyncio.shield(self._last_proposal)

    async def submit(
        self,
        decision: Decision[RequestT, ResponseT],
        request: RequestT,
        *,
        name: str = "",
        is_of_client: bool = False,
        requester: Requester | None = None,
    ) -> ResponseT:
        """Decide, commit, replay, answer: when this returns, publishers have seen the change.

        `name` is the request's, for the records of what is not to be done twice. A client's request that changes
        nothing is answered when the voters have said that this node led when it was asked: without a commit another
        controller may have made the opposite true.

        `requester` is the client that asks, if one does: what its request rests on must be allowed by the ACLs of the
        image that is decided upon. The answer has the throttle time of its quota of changes (KIP-599).

        Raises PermissionsChangedError when it is not.
        Raises KafkaError: the decision's own, or NOT_CONTROLLER when this node is not active or stops being so (then
        the change may or may not happen). A caller that stops waiting does not stop the change.
        """
        asked_ms = self._now_ms()
        while self._background_decision is not None:
            await asyncio.shield(self._background_decision)
        try:
            result, last, quota = await self._decide(decision, request, name, requester)
        except KafkaError:
            # It has no commit to wait for. One that was paused may have been replaced, and refuse what holds since.
            if self.is_active:
                await self._confirm()
            raise
        if is_of_client and not result.records:
            await self._confirm()
        if result.heard_broker is not None:
            self._sessions.touch(result.heard_broker, self._now_ms())
            if result.heard_offset is not None:
                self._sessions.note_offset(
                    result.heard_broker,
                    result.heard_offset,
                    is_caught_up=result.heard_offset >= self._loader.image.offset,
                    wall_ms=self._wall_clock_ms(),
                )
        if result.left_broker is not None:
            self._sessions.end(result.left_broker)
        elif result.heard_broker is not None and result.heard_broker in self._overlay.brokers:
            # It may be in no image any more: leadership can have been lost while this was decided.
            self._watcher.on_heard(result.heard_broker, self._overlay.brokers[result.heard_broker].epoch, asked_ms)
        if last is not None:
            try:
                await asyncio.shield(last)
            except (NotLeader, OutcomeUnknown, ConsensusFailed) as error:
                raise self._not_controller() from error
        return result.response if quota is None else throttled(result.response, quota.throttle_time_ms())

    async def _confirm(self) -> None:
        """Wait until what was proposed is committed, and the voters say that this node led when it was asked.

        Raises KafkaError(NOT_CONTROLLER).
        """
        try:
            if self._last_proposal is not None:
                await asyncio.shield(self._last_proposal)
            await self._consensus.read_barrier()
        except (NotLeader, OutcomeUnknown, ConsensusFailed) as error:
            raise self._not_controller() from error

    async def _decide(
        self, decision: Decision[RequestT, ResponseT], request: RequestT, name: str, requester: Requester | None
    ) -> _Decided[ResponseT]:
        quota = None if requester is None else self._find_quota(requester)
        if weight(self._overlay, request) > INLINE_MAX and self.is_active:
            done = self._background_decision = self._loop.create_future()
            decided = self._loop.create_task(
                self._decide_in_background(decision, request, name, requester, quota, done)
            )
            decided.add_done_callback(_retrieve)
            return await asyncio.shield(decided)
        if not self.is_active:
            raise self._not_controller()
        return self._propose_decided(self._preparation(decision, request, name, requester, quota)(), quota)

    def _propose_decided(self, change: Change[ResponseT], quota: MutationQuota | None) -> _Decided[ResponseT]:
        last = self._propose_change(change)
        if quota is not None:
            quota.settle(change.result.mutations)
        return _Decided(change.result, last, quota)

    async def _decide_in_background(
        self,
        decision: Decision[RequestT, ResponseT],
        request: RequestT,
        name: str,
        requester: Requester | None,
        quota: MutationQuota | None,
        done: "asyncio.Future[None]",
    ) -> _Decided[ResponseT]:
        """Decides in the executor because it takes long; other requests wait until `done`."""
        try:
            while True:
                epoch, next_offset = self._claimed_epoch, self._consensus.next_offset
                try:
                    change = await self._loop.run_in_executor(
                        None, self._preparation(decision, request, name, requester, quota)
                    )
                except KafkaError as error:
                    if self._claimed_epoch != epoch:
                        raise self._not_controller() from error
                    raise
                if not self.is_active or self._claimed_epoch != epoch:
                    raise self._not_controller()
                # The engine may have put in an entry of its own meanwhile.
                if self._consensus.next_offset == next_offset:
                    return self._propose_decided(change, quota)
        finally:
            self._background_decision = None
            done.set_result(None)

    def _preparation(
        self,
        decision: Decision[RequestT, ResponseT],
        request: RequestT,
        name: str,
        requester: Requester | None,
        quota: MutationQuota | None,
    ) -> Callable[[], Change[ResponseT]]:
        now_ms = self._now_ms()
        context = DecisionContext(
            next_offset=self._consensus.next_offset,
            random=self._random,
            config=self._config,
            has_live_session=lambda broker_id: self._sessions.is_live(broker_id, now_ms),
            change=name,
            wall_ms=self._wall_clock_ms(),
            requester=requester,
            allowance=None if quota is None else quota.allowance(),
        )
        return partial(
            prepare,
            decision,
            self._overlay,
            request,
            context,
            epoch=self._claimed_epoch or NO_CONTROLLER_EPOCH,
            timestamp_ms=context.wall_ms,
        )

    def _propose_change(self, change: Change[ResponseT]) -> "asyncio.Future[CommitPosition] | None":
        self.unclean_election_count += unclean_elections(change.result.records)
        self.eligible_election_count += eligible_elections(self._overlay, change.result.records)
        # An answer without records may rest on records that are not committed yet, so it waits for them too.
        return self._propose(change.commands, change.image) if change.commands else self._last_proposal

    def _append(self, records: Sequence[MetadataRecord]) -> None:
        timestamp_ms = self._wall_clock_ms()
        commands = split_commands(timestamp_ms, records)
        offset = self._consensus.next_offset + len(commands) - 1
        image = image_after(
            self._overlay,
            records,
            offset=offset,
            epoch=self._claimed_epoch or NO_CONTROLLER_EPOCH,
            timestamp_ms=timestamp_ms,
        )
        self._propose(commands, image)

    def _propose(self, commands: Sequence[bytes], overlay: MetadataImage) -> "asyncio.Future[CommitPosition]":
        assert commands
        epoch = self._claimed_epoch
        if epoch is None:
            raise self._not_controller()
        for command in commands:
            try:
                proposal = self._consensus.propose(command, epoch=epoch)
            except NotLeader as error:
                raise self._not_controller() from error
            self._pending_count += 1
            # A waiting request receives the exception; asyncio must not report other proposals as never retrieved.
            proposal.add_done_callback(_retrieve)
            self._last_proposal = proposal
        self._overlay = overlay
        assert self._last_proposal is not None
        self._last_proposal.add_done_callback(partial(self._note_commit, self._now_ms()))
        return self._last_proposal

    # What the engine tells.

    def on_snapshot(self, snapshot: Snapshot) -> None:
        self.log.reset(SnapshotId(snapshot.end_offset, snapshot.epoch))
        self.snapshots.on_snapshot()
        self._replay.add_snapshot(snapshot)

    def on_commit(self, offset: int, epoch: ControllerEpoch, command: bytes) -> None:
        entry = CommittedEntry(offset, epoch, command)
        self.log.append(entry)
        self._tell_growth()
        self._replay.add_entry(entry)

    def _take(self, entry: CommittedEntry) -> None:
        offset, epoch, command = entry
        self._loader.load_entry(offset, epoch, command)
        if epoch == self._claimed_epoch:
            if not self._activated.done():
                self._activate()
            elif self._pending_count and command:
                self._pending_count -= 1
                if self._pending_count == 0:
                    self._last_proposal = None
                    self._overlay = self._loader.image
        self.snapshots.on_entry()

    def on_leadership(self, leader_id: NodeId | None, epoch: ControllerEpoch) -> None:
        logger.info("In the new epoch, the leader is: leader=%s epoch=%d", leader_id, epoch)
        self._sessions.clear()
        self.seen_leader_count += leader_id is not None
        self._pending_count = 0
        self._last_proposal = None
        if self._activated.done():
            self._activated = self._loop.create_future()
        self._claimed_epoch = epoch if leader_id == self._consensus.node_id else None
        if leader_id not in (None, self._consensus.node_id):
            self._former_leader_id = leader_id
        self._watcher.on_inactive()
        self._tell_growth()

    def on_failure(self, error: ConsensusFailed) -> None:
        self._claimed_epoch = None
        self._on_failure(str(error))

    def _activate(self) -> None:
        self._loader.catch_up()
        self._overlay = self._loader.image
        now_ms = self._now_ms()
        for broker in self._loader.image.brokers.values():
            # One that is fenced has left, perhaps long ago, or will be heard.
            if broker.is_fenced:
                continue
            if broker.id != self._consensus.node_id:
                self._sessions.touch(broker.id, now_ms)
            else:
                # It may be an earlier run of this node that registered, so no new one is held up; and when this node is
                # no broker any more, none follows.
                self._sessions.await_contact(broker.id, now_ms)
        self._activated.set_result(None)
        logger.info(
            "Becoming the active controller: node_id=%d epoch=%d", self._consensus.node_id, self._consensus.epoch
        )
        if self._loader.is_in_transaction:
            reason = "the controller that began it stopped before its end"
            command = encode_entry(self._wall_clock_ms(), [encode_record(AbortTransactionRecord(reason=reason))])
            self._propose([command], self._overlay)
        if self._overlay.cluster_id is None and self._bootstrap:
            self._append(self._bootstrap)
        self._watcher.on_active(self._former_leader_id)

    async def watch_sessions(self) -> None:
        """Fence brokers whose sessions end, while this node is the active controller; until cancelled.

        What this process was held up itself does not count against them: heartbeats may lie unread.
        """
        period_ms = self._config.broker_session_timeout_ms // _CHECKS_PER_SESSION
        while True:
            slept_from_ms = self._now_ms()
            await asyncio.sleep(period_ms / 1000)
            now_ms = self._now_ms()
            if now_ms - slept_from_ms > 2 * period_ms:
                self._sessions.renew(now_ms)
            if not self.is_active:
                continue
            for broker_id in self._sessions.expired(now_ms):
                try:
                    if await self.submit(fence_expired, broker_id):
                        self.timed_out_session_count += 1
                        logger.warning("Fencing broker because its session has timed out: broker=%d", broker_id)
                except KafkaError:
                    # The active controller of now begins a new session for each broker.
                    break

    def _note_commit(self, proposed_ms: int, proposal: "asyncio.Future[CommitPosition]") -> None:
        if not proposal.cancelled() and proposal.exception() is None:
            now_ms = self._now_ms()
            self.commit_times.note(now_ms - proposed_ms, now_ms)

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def observers(self, voter_ids: Collection[NodeId]) -> tuple[VoterStatus, ...]:
        """Return the brokers that do not vote, as their heartbeats of late tell. Times are wall-clock milliseconds."""
        silent_since_ms = self._wall_clock_ms() - _OBSERVER_SILENCE_MS_MAX
        return tuple(
            VoterStatus(
                replica_id=broker_id,
                # All of them may have failed.
                directory_id=next(iter(self._loader.image.brokers[broker_id].directories), DIRECTORY_LOST),
                log_end_offset=position.offset + 1,
                last_fetch_timestamp_ms=position.told_ms,
                last_caught_up_timestamp_ms=position.caught_up_ms,
            )
            for broker_id, position in sorted(self._sessions.positions().items())
            if broker_id not in voter_ids
            and broker_id in self._loader.image.brokers
            and position.told_ms > silent_since_ms
        )

    def silent_ms_by_broker(self) -> Mapping[NodeId, int]:
        """Return the milliseconds since the last heartbeat of each broker with a session here."""
        return self._sessions.silent_ms(self._now_ms())

    async def wait_growth(self) -> None:
        """Wait until the log has more entries, or someone else leads."""
        await asyncio.shield(self._grown)

    def release_waiting(self) -> None:
        """Let `wait_growth` return although nothing has grown."""
        self._tell_growth()

    def _tell_growth(self) -> None:
        grown, self._grown = self._grown, self._loop.create_future()
        grown.set_result(None)

    def _not_controller(self) -> KafkaError:
        leader_id = self._consensus.leader_id
        if leader_id is None or leader_id == self._consensus.node_id:
            return KafkaError(ErrorCode.NOT_CONTROLLER, "No controller appears to be active.")
        return KafkaError(ErrorCode.NOT_CONTROLLER, f"The active controller appears to be node {leader_id}.")


def _retrieve(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled():
        future.exception()
