"""Replicates from one leader: one connection, one incremental fetch session (KIP-227), long polling.

Kafka: `ReplicaFetcherThread`, `AbstractFetcherThread`.

What is fetched is decided by `fetch_plan.py`, where logs are cut by `divergence.py`. An answer is taken in partition by
partition, a slice in each turn of the loop, and the next request tells where the logs end now: that is what the leader
counts as replicated. Where `flush.messages` asks for it the request waits for the sync.

Something new to ask for does not wait for the poll under way: a second request of the session ends that.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import BrokerEpoch, NodeId
from ...protocol.replica_fetch import (
    FetchedPartition,
    FollowedPartition,
    ReplicaFetchLimits,
    decode_replica_fetch_response,
    encode_replica_fetch,
)
from ...quorum.links.rules.peer_proof import PeerRefused
from ..cluster.peer_link import CONNECT_TIMEOUT_MS
from ..cluster.peers import PeerConnector
from ..replicas.partition import Partition
from ..timing.runtime import Runtime
from .fetcher_link import FetcherLink
from .offset_resets import OffsetResets
from .ports import FollowedLogs
from .rules.divergence import truncation_offset
from .rules.fetch_plan import DELAY_MS_MIN, FetchPlan, FollowedKey
from .rules.fetcher_config import FetcherConfig
from .rules.replication_quota import ReplicationQuota
from .rules.stalled_partitions import StalledPartitions

logger = logging.getLogger(__name__)

SLICE_BYTES: Final = 256 * 1024
"""Appended in one turn of the loop: a fraction of a millisecond."""
PAUSE_MS_MAX: Final = 500
"""For a throttled partition, until the quota is looked at again: an operator may have changed it."""
REQUESTS_MAX: Final = 2
"""On their way at a time: a poll, and the one that ends it."""
_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class ReplicaFetcher:
    def __init__(
        self,
        leader_id: NodeId,
        *,
        node_id: NodeId,
        partitions: FollowedLogs,
        peers: PeerConnector,
        address: Callable[[], tuple[str, int] | None],
        broker_epoch: Callable[[], BrokerEpoch],
        config: FetcherConfig,
        quota: ReplicationQuota,
        on_closed_by_peer: Callable[[NodeId], None],
        runtime: Runtime,
    ) -> None:
        """`address` is where the metadata say that the leader is; `quota` is for what all fetchers fetch.

        `on_closed_by_peer` is called with the leader when its side closed the connection.
        """
        self._leader_id = leader_id
        self._node_id = node_id
        self._partitions = partitions
        self._peers = peers
        self._address = address
        self._broker_epoch = broker_epoch
        self._config = config
        self._quota = quota
        self._on_closed_by_peer = on_closed_by_peer
        self._limits = ReplicaFetchLimits(
            max_wait_ms=config.wait_ms_max,
            min_bytes=config.bytes_min,
            max_bytes=config.response_bytes_max,
            partition_max_bytes=config.bytes_max,
        )
        self._loop = runtime.loop
        self._wall_clock_ms = runtime.wall_clock_ms
        self._now_ms = runtime.monotonic_ms
        self._client_id = f"replica-{node_id}".encode()
        self._plan = FetchPlan(self._position_of, delay_ms_max=config.backoff_ms)
        self._held_up = StalledPartitions()
        self._followed: dict[FollowedKey, Partition] = {}
        self._link: FetcherLink | None = None
        # The numbers of requests that are not answered yet.
        self._sent: deque[int] = deque()
        self._sent_last_ms = 0
        # Of the answer that is being taken in.
        self._arrived: deque[tuple[FollowedKey, FetchedPartition]] = deque()
        self._arrived_number = 0
        self._is_taking_in = False
        self._diverging: dict[Partition, int] = {}
        # Those whose log could not be cut to the end, and takes nothing in. The leader must not count what is left.
        self._uncut: set[FollowedKey] = set()
        # Appended to, and not synced yet.
        self._unsynced: dict[Partition, FollowedKey] = {}
        # Those that lacked something of what was committed when the leader was heard last, or was not heard yet.
        self._lagging: set[FollowedKey] = set()
        self._resets = OffsetResets(
            leader_id,
            node_id=node_id,
            logs=partitions,
            peers=peers,
            address=address,
            position_of=self._position_if_followed,
            on_reset=self._on_reset,
            on_failure=lambda partition, reason: self._fail(_key(partition), partition, reason),
        )
        self._wake_up: asyncio.TimerHandle | None = None
        self._is_due = False

    @property
    def is_idle(self) -> bool:
        """Whether it follows nothing any more."""
        return not self._followed

    @property
    def followed(self) -> Collection[Partition]:
        return self._followed.values()

    @property
    def stalled_count(self) -> int:
        """Partitions that could not be fetched or appended when it was tried last."""
        return self._held_up.count

    # What to fetch.

    def follow(self, partition: Partition) -> None:
        """In the leader epoch that the partition is in now."""
        key = _key(partition)
        self._followed[key] = partition
        self._diverging.pop(partition, None)
        self._lagging.add(key)
        self._plan.add(key)
        if partition.log.damage is not None:
            self._uncut.add(key)
        self._fetch_soon()

    def unfollow(self, partition: Partition) -> None:
        key = _key(partition)
        if self._followed.get(key) is not partition:
            return
        del self._followed[key]
        self._plan.remove(key)
        self._held_up.forget(key)
        self._diverging.pop(partition, None)
        self._lagging.discard(key)
        self._uncut.discard(key)
        self._resets.cancel(partition)
        if self._unsynced.pop(partition, None) is not None:
            partition.on_synced = None
            self._fetch_soon()

    def on_log_start(self, partition: Partition) -> None:
        """Retention has moved it: the leader sends no consumer here for what is gone."""
        self._plan.on_moved(_key(partition))
        self._fetch_soon()

    def _position_of(self, key: FollowedKey) -> FollowedPartition:
        partition = self._followed[key]
        state, log = partition.state, partition.log
        # What is not synced where it has to be does not count.
        return FollowedPartition(
            state.leader_epoch, state.log_end_offset, log.leader_epochs.latest_epoch, log.log_start_offset
        )

    def _position_if_followed(self, partition: Partition) -> FollowedPartition | None:
        key = _key(partition)
        return self._position_of(key) if self._followed.get(key) is partition else None

    # The connection.

    async def run(self) -> None:
        """Until cancelled."""
        backoff_ms = DELAY_MS_MIN
        said = ""
        try:
            while True:
                reason = await self._connect_and_fetch()
                if self._sent_last_ms:
                    backoff_ms, said = DELAY_MS_MIN, ""
                self._sent_last_ms = 0
                if reason != said:
                    logger.info(
                        "Connection to leader could not be established: leader=%d reason=%s", self._leader_id, reason
                    )
                    said = reason
                await asyncio.sleep(backoff_ms / 1000)
                backoff_ms = min(2 * backoff_ms, self._config.backoff_ms)
        finally:
            self._let_go("this node follows it no more")
            self._resets.cancel_all()
            if self._wake_up is not None:
                self._wake_up.cancel()

    async def _connect_and_fetch(self) -> str:
        """Until the connection is lost; returns why."""
        address = self._address()
        if address is None:
            return "the metadata do not tell where it is"
        try:
            connection, _ = await self._peers.connect(*address, node_id=self._leader_id, timeout_ms=CONNECT_TIMEOUT_MS)
        except (ConnectionError, TimeoutError, CorruptData, PeerRefused) as error:
            return str(error)
        lost: asyncio.Future[str] = self._loop.create_future()
        try:
            self._link = FetcherLink(
                connection,
                on_answer=self._on_answer,
                on_lost=partial(self._on_lost, lost),
            )
        except ConnectionError as error:
            await connection.close()
            return str(error)
        self._plan.end_session()
        self._fetch_soon()
        timeout_ms = self._config.timeout_ms
        while not (await asyncio.wait({lost}, timeout=timeout_ms / 1000))[0]:
            if self._sent and self._now_ms() - self._sent_last_ms >= timeout_ms:
                self._let_go(f"it did not answer within {timeout_ms} ms")
        self._let_go("")
        return lost.result()

    def _on_lost(self, lost: asyncio.Future[str], reason: str) -> None:
        if self._link is not None:
            # Not let go by this side.
            self._on_closed_by_peer(self._leader_id)
        if not lost.done():
            lost.set_result(reason)

    def _let_go(self, reason: str) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close(reason)
        self._sent.clear()
        self._arrived.clear()
        self._diverging.clear()
        self._is_taking_in = False

    # Asking.

    def _fetch_soon(self) -> None:
        """Asks once for all that is to be asked for by the end of this turn of the loop."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._fetch)

    def _fetch(self) -> None:
        self._is_due = False
        link, plan = self._link, self._plan
        if link is None or self._is_taking_in or self._unsynced:
            return
        if self._uncut:
            self._cut_again(self._now_ms())
        if self._sent and (plan.needs_session or not plan.has_news or len(self._sent) >= REQUESTS_MAX):
            return
        now_ms = self._now_ms()
        limits = self._limits._replace(max_wait_ms=0) if plan.begins_session else self._limits
        if self._quota.is_set:
            self._hold_back(now_ms)
        planned = plan.next_fetch(now_ms)
        self._watch_delays(now_ms)
        if planned is None:
            return
        self._sent.append(planned.number)
        self._sent_last_ms = now_ms
        link.send(
            encode_replica_fetch(
                _correlation_id(planned.number),
                self._client_id,
                limits,
                replica_id=self._node_id,
                broker_epoch=self._broker_epoch(),
                session_id=planned.session_id,
                session_epoch=planned.session_epoch,
                partitions=planned.partitions,
                forgotten=planned.forgotten,
            )
        )

    def _hold_back(self, now_ms: int) -> None:
        """Leaves throttled partitions that lag out of the next request while the quota is exceeded (KIP-73)."""
        plan, quota = self._plan, self._quota
        plan.end_delays(now_ms)
        if not quota.is_exceeded(now_ms):
            return
        due_ms = min(quota.allowed_ms(now_ms), now_ms + PAUSE_MS_MAX)
        for key in self._lagging:
            partition = self._followed[key]
            # What was asked for already, and is on its way, would be thrown away and fetched again.
            if quota.is_throttled(partition.topic, partition.index) and not (self._sent and plan.is_in_session(key)):
                plan.pause(key, due_ms)

    def _cut_again(self, now_ms: int) -> None:
        """Leaves partitions out of the next request whose log still cannot be cut."""
        self._plan.end_delays(now_ms)
        for key in [key for key in self._uncut if not self._plan.is_delayed(key)]:
            partition = self._followed[key]
            if partition.log.damage is not None and partition.recheck():
                self._plan.delay(key, now_ms)
            else:
                self._uncut.discard(key)
                self._plan.on_progress(key)
        self._watch_delays(now_ms)

    def _watch_delays(self, now_ms: int) -> None:
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None
        due_ms = self._plan.next_due_ms
        if due_ms is not None:
            self._wake_up = self._loop.call_later(max(due_ms - now_ms, 1) / 1000, self._on_delay_over)

    def _on_delay_over(self) -> None:
        self._wake_up = None
        now_ms = self._now_ms()
        self._plan.end_delays(now_ms)
        self._watch_delays(now_ms)
        self._fetch_soon()

    # Taking in.

    def _on_answer(self, frame: memoryview) -> None:
        link = self._link
        assert link is not None, "answers come over the link"
        try:
            correlation_id, response = decode_replica_fetch_response(frame)
            if not self._sent or correlation_id != _correlation_id(self._sent[0]):
                raise CorruptData(f"the answer has the correlation id {correlation_id}, which was not asked with")
            self._arrived_number = self._sent.popleft()
        except CorruptData as error:
            link.close(str(error))
            return
        if response.error_code:
            self._on_refusal(ErrorCode(response.error_code))
        else:
            self._plan.on_answer(response.session_id)
            self._arrived.extend(
                ((topic_id, partition.partition_index), partition)
                for topic_id, partitions in response.topics
                for partition in partitions
            )
        self._is_taking_in = True
        self._take_in_some()

    def _on_refusal(self, error: ErrorCode) -> None:
        self._plan.end_session()
        if error in _SESSION_ERRORS:
            logger.debug(
                "Leader was unable to process the fetch request, starting a new session: leader=%d error=%s",
                self._leader_id,
                error.name,
            )
            return
        logger.warning("Error in response for fetch request: leader=%d error=%s", self._leader_id, error.name)
        now_ms = self._now_ms()
        for key in self._followed:
            self._plan.delay(key, now_ms)

    def _take_in_some(self) -> None:
        if not self._is_taking_in:
            # The link was lost meanwhile.
            return
        size = 0
        while self._arrived:
            key, fetched = self._arrived.popleft()
            self._take_in(key, fetched)
            size += len(fetched.records)
            if size >= SLICE_BYTES and self._arrived:
                self._loop.call_soon(self._take_in_some)
                return
        self._is_taking_in = False
        self._truncate_diverging()
        link = self._link
        if link is not None:
            link.release()
        if not self._is_taking_in:
            self._fetch()

    def _take_in(self, key: FollowedKey, fetched: FetchedPartition) -> None:
        partition = self._followed.get(key)
        if partition is None:
            return
        if not self._plan.expects(key, self._arrived_number) or partition in self._unsynced:
            # Without a word of that, the leader would send the same again and again.
            self._plan.on_moved(key)
            return
        error = ErrorCode(fetched.error_code)
        if error in (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE):
            self._plan.delay(key, self._now_ms())
            self._resets.begin(partition)
        elif error is not ErrorCode.NONE:
            self._fail(key, partition, error.name)
        elif fetched.diverging_epoch is not None:
            log = partition.log
            own_epoch = log.leader_epochs.end_offset_for(fetched.diverging_epoch[0], log.log_end_offset)
            self._diverging[partition] = truncation_offset(fetched.diverging_epoch, own_epoch, log.log_end_offset)
        else:
            try:
                self._append(partition, fetched)
            except (KafkaError, CorruptData) as refusal:
                self._fail(key, partition, str(refusal))
                return
            self._count(key, partition, fetched)
            self._plan.on_progress(key)
            self._held_up.forget(key)
            if not partition.is_synced:
                self._unsynced[partition] = key
                partition.on_synced = partial(self._on_synced, partition)

    def _count(self, key: FollowedKey, partition: Partition, fetched: FetchedPartition) -> None:
        if self._quota.is_set and self._quota.is_throttled(partition.topic, partition.index):
            self._quota.record(len(fetched.records), self._now_ms())
        if fetched.high_watermark > partition.log.log_end_offset:
            self._lagging.add(key)
        elif self._lagging:
            self._lagging.discard(key)

    def _append(self, partition: Partition, fetched: FetchedPartition) -> None:
        log = partition.log
        is_more_readable = False
        if len(fetched.records) > 0:
            if log.log_start_offset == log.log_end_offset:
                # Where records were deleted, the leader's log may begin within a batch, and comes with all of that.
                base_offset = int.from_bytes(fetched.records[:8], "big")
                if base_offset < log.log_end_offset:
                    self._partitions.restart(partition, base_offset, log.producers.below(base_offset))
            is_more_readable = partition.append_as_follower(fetched.records, self._wall_clock_ms())
        if partition.on_leader_offsets(
            high_watermark=fetched.high_watermark, log_start_offset=fetched.log_start_offset
        ):
            is_more_readable = True
        if is_more_readable:
            self._partitions.complete_waiting(partition)

    def _on_synced(self, partition: Partition, is_refused: bool) -> None:
        key = self._unsynced.pop(partition, None)
        if key is not None:
            if is_refused:
                self._plan.delay(key, self._now_ms())
            else:
                self._plan.on_progress(key)
            self._fetch_soon()

    def _truncate_diverging(self) -> None:
        diverging, self._diverging = self._diverging, {}
        if not diverging:
            return
        if len(diverging) > 1:
            cut = sum(partition.log.log_end_offset - offset for partition, offset in diverging.items())
            logger.info(
                "Truncating partitions: leader=%d partitions=%d offsets=%d", self._leader_id, len(diverging), cut
            )
        for partition, offset in diverging.items():
            logger.log(
                logging.INFO if len(diverging) == 1 else logging.DEBUG,
                "Truncating partition: topic=%s partition=%d leader=%d leader_epoch=%d from=%d to=%d high_watermark=%d",
                partition.topic,
                partition.index,
                self._leader_id,
                partition.state.leader_epoch,
                partition.log.log_end_offset,
                offset,
                partition.state.high_watermark,
            )
        before = {partition: self._position_of(_key(partition)) for partition in diverging}
        try:
            self._partitions.truncate(diverging)
        except KafkaError as error:
            logger.warning("Failed to truncate partitions: leader=%d reason=%s", self._leader_id, error)
        for partition, position in before.items():
            key = _key(partition)
            if key not in self._followed:
                continue
            if partition.log.damage is not None or self._position_of(key) == position:
                self._fail(key, partition, "its log parts from the leader's, and cannot be cut")
            else:
                self._plan.on_progress(key)

    def _on_reset(self, partition: Partition) -> None:
        self._plan.add(_key(partition))
        self._fetch_soon()

    def _fail(self, key: FollowedKey, partition: Partition, reason: str) -> None:
        if self._followed.get(key) is not partition:
            # A disk that failed has taken it offline.
            return
        now_ms = self._now_ms()
        is_news = self._held_up.note(key, f"{partition.topic}-{partition.index}", reason, now_ms)
        logger.log(
            logging.INFO if is_news else logging.DEBUG,
            "Error for partition: topic=%s partition=%d leader=%d leader_epoch=%d offset=%d reason=%s",
            partition.topic,
            partition.index,
            self._leader_id,
            partition.state.leader_epoch,
            partition.log.log_end_offset,
            reason,
        )
        if partition.log.damage is not None:
            self._uncut.add(key)
        summary = self._held_up.summary(now_ms)
        if summary is not None:
            logger.warning("Error for partitions: leader=%d %s", self._leader_id, summary)
        self._plan.delay(key, now_ms)


def _correlation_id(number: int) -> int:
    return number & 0x7FFFFFFF


def _key(partition: Partition) -> FollowedKey:
    return partition.topic_id.bytes, partition.index
