"""The controller, Raft and the metadata. Kafka: `QuorumControllerMetrics`, `KafkaRaftMetrics`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from ...protocol.ids import NO_NODE, NodeId
from ...quorum.controller.controller import Controller
from ...quorum.fencing.fast_fencing import FastFencing
from ...quorum.metadata.image import MetadataImage, TopicsImage
from ...quorum.metadata.records import NO_LEADER
from ...quorum.voter.voter import RaftVoter
from ..cluster.metadata_cache import MetadataCache
from .loop_watch import LoopWatch
from .rules import quorum_metrics as metrics
from .rules.metric import Reading, read
from .rules.readings import WALKED_PER_TURN, Readings

STATES: Final = ("leader", "follower", "unattached", "observer")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerView:
    """What a controller has to tell."""

    controller: Controller
    voter: RaftVoter
    voter_ids: tuple[NodeId, ...]
    fast_fencing: FastFencing | None


class ControllerReader:
    def __init__(self, view: ControllerView, watch: LoopWatch, wall_clock_ms: Callable[[], int]) -> None:
        self._view = view
        self._wall_clock_ms = wall_clock_ms
        self._watch = watch
        self._counted: TopicsImage | None = None
        self._offline = self._unbalanced = 0

    def __call__(self) -> Readings:
        controller, voter = self._view.controller, self._view.voter
        image = controller.image
        yield from self._count(image)
        fenced = sum(broker.is_fenced for broker in image.brokers.values())
        yield read(metrics.ACTIVE_CONTROLLER, controller.is_active)
        yield read(metrics.ACTIVE_BROKERS, len(image.brokers) - fenced)
        yield read(metrics.FENCED_BROKERS, fenced)
        yield read(metrics.TOPICS, len(image.topics.by_name))
        yield read(metrics.PARTITIONS, image.topics.partition_count)
        yield read(metrics.OFFLINE_PARTITIONS, self._offline)
        yield read(metrics.IMBALANCE, self._unbalanced)
        yield read(metrics.METADATA_ERRORS, 0)
        yield read(metrics.APPLIED_OFFSET, image.offset)
        yield read(metrics.APPLIED_TIMESTAMP, image.timestamp_ms)
        lag_ms = 0 if controller.is_active else max(0, self._wall_clock_ms() - image.timestamp_ms)
        yield read(metrics.APPLIED_LAG, lag_ms)
        yield read(metrics.COMMITTED_OFFSET, voter.high_watermark - 1)
        yield read(metrics.TIMED_OUT, controller.timed_out_session_count)
        yield read(metrics.NEW_CONTROLLERS, controller.seen_leader_count)
        yield read(metrics.UNCLEAN_ELECTIONS, controller.unclean_election_count)
        fast_fencing = self._view.fast_fencing
        if fast_fencing is not None:
            yield read(metrics.FAST_FENCINGS, fast_fencing.count)
            yield read(metrics.WRONG_FENCINGS, fast_fencing.wrong_count)
        yield from self._read_raft()

    def _count(self, image: MetadataImage) -> Readings:
        """Walks over all partitions, unless they are those of the last time."""
        topics = image.topics
        if topics is self._counted:
            return
        offline = unbalanced = walked = 0
        for topic in topics.by_name.values():
            for partition in topic.partitions:
                offline += partition.leader == NO_LEADER
                unbalanced += partition.leader != partition.replicas[0]
                walked += 1
                if walked % (4 * WALKED_PER_TURN) == 0:
                    yield None
        self._counted, self._offline, self._unbalanced = topics, offline, unbalanced

    def _read_raft(self) -> Readings:
        view, voter, watch = self._view, self._view.voter, self._watch
        leader_id = voter.leader_id
        yield from read_role(
            NO_NODE if leader_id is None else leader_id,
            voter.epoch,
            "unattached" if leader_id is None else "leader" if leader_id == voter.node_id else "follower",
        )
        yield read(metrics.HIGH_WATERMARK, voter.high_watermark)
        yield read(metrics.LOG_END_OFFSET, voter.log_end_offset)
        yield read(metrics.UNKNOWN_VOTERS, voter.unlinked_count)
        yield read(metrics.VOTERS, len(view.voter_ids))
        observers = view.controller.observers(view.voter_ids) if view.controller.is_active else ()
        yield read(metrics.OBSERVERS, len(observers))
        now_ms = watch.now_ms()
        average_ms, longest_ms = view.controller.commit_times.average_and_max(now_ms)
        yield read(metrics.COMMIT_LATENCY_AVG, average_ms)
        yield read(metrics.COMMIT_LATENCY_MAX, longest_ms)
        average_ms, longest_ms = voter.election_times.average_and_max(now_ms)
        yield read(metrics.ELECTION_LATENCY_AVG, average_ms)
        yield read(metrics.ELECTION_LATENCY_MAX, longest_ms)
        growth = watch.rate_per_s(voter.log_end_offset)
        is_leader = leader_id == voter.node_id
        yield read(metrics.APPEND_RATE, growth if is_leader else 0.0)
        yield read(metrics.FETCH_RATE, 0.0 if is_leader else growth)
        yield read(metrics.POLL_IDLE, watch.idle_ratio())


class MetadataReader:
    """Of a broker."""

    def __init__(self, metadata: MetadataCache, wall_clock_ms: Callable[[], int]) -> None:
        self._metadata = metadata
        self._wall_clock_ms = wall_clock_ms

    def __call__(self) -> Readings:
        image = self._metadata.image
        yield read(metrics.BROKER_APPLIED_OFFSET, image.offset)
        yield read(metrics.BROKER_APPLIED_TIMESTAMP, image.timestamp_ms)
        yield read(metrics.BROKER_APPLIED_LAG, max(0, self._wall_clock_ms() - image.timestamp_ms))
        yield read(metrics.LOAD_ERRORS, 0)
        yield read(metrics.APPLY_ERRORS, 0)


class ObserverReader:
    """Of a node that does not vote: what it knows of the quorum."""

    def __init__(self, metadata: MetadataCache, voters: Collection[NodeId], watch: LoopWatch) -> None:
        self._metadata = metadata
        self._voters = voters
        self._watch = watch

    def __call__(self) -> Readings:
        image = self._metadata.image
        yield from read_role(NO_NODE, image.epoch, "observer")
        yield read(metrics.HIGH_WATERMARK, image.offset + 1)
        yield read(metrics.LOG_END_OFFSET, image.offset + 1)
        yield read(metrics.VOTERS, len(self._voters))
        yield read(metrics.POLL_IDLE, self._watch.idle_ratio())


def read_role(leader_id: int, epoch: int, state: str) -> Readings:
    yield read(metrics.CURRENT_LEADER, leader_id)
    yield read(metrics.CURRENT_EPOCH, epoch)
    yield Reading(metrics.CURRENT_STATE, [((one,), 1) for one in STATES if one == state])
