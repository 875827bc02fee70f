"""The controller, Raft and the metadata. Kafka: `QuorumControllerMetrics`, `KafkaRaftMetrics`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from msgspec import Struct

from ...protocol.ids import NO_NODE, NodeId
from ...quorum.controller.controller import Controller
from ...quorum.fencing.fast_fencing import FastFencing
from ...quorum.metadata.features import FEATURES, METADATA_VERSION
from ...quorum.metadata.image import BrokerRegistration, MetadataImage, TopicsImage
from ...quorum.metadata.records import NO_LEADER
from ...quorum.voter.voter import RaftVoter
from ..cluster.metadata_cache import MetadataCache
from .loop_watch import LoopWatch
from .rules import quorum_metrics as metrics
from .rules.metric import Reading, read
from .rules.readings import WALKED_PER_TURN, Readings

FENCED: Final = 10
CONTROLLED_SHUTDOWN: Final = 20
ACTIVE: Final = 30
STATES: Final = ("leader", "follower", "unattached", "observer")


class ControllerView(Struct, frozen=True, kw_only=True):
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
        yield read(metrics.ELIGIBLE_ELECTIONS, controller.eligible_election_count)
        yield from self._read_brokers(image)
        yield read(metrics.SNAPSHOT_BYTES, controller.snapshots.latest_bytes)
        yield read(metrics.SNAPSHOT_AGE, controller.snapshots.latest_age_ms)
        fast_fencing = self._view.fast_fencing
        if fast_fencing is not None:
            yield read(metrics.FAST_FENCINGS, fast_fencing.count)
            yield read(metrics.WRONG_FENCINGS, fast_fencing.wrong_count)
        yield from self._read_raft()
        yield from read_features(image, voter.leader_id)

    def _read_brokers(self, image: MetadataImage) -> Readings:
        controller = self._view.controller
        brokers = image.brokers.values()
        yield read(metrics.SHUTDOWNS, sum(broker.in_controlled_shutdown for broker in brokers))
        yield Reading(
            metrics.REGISTRATION_STATE, [((str(broker.id),), registration_state(broker)) for broker in brokers]
        )
        silent_ms = controller.silent_ms_by_broker() if controller.is_active else {}
        yield Reading(metrics.HEARTBEAT_AGE, [((str(broker_id),), age) for broker_id, age in silent_ms.items()])

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
        yield read(metrics.LOG_END_EPOCH, voter.log_end_epoch)
        yield read(metrics.CURRENT_VOTE, NO_NODE if voter.voted_for is None else voter.voted_for)
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

    def __init__(
        self,
        metadata: MetadataCache,
        voters: Collection[NodeId],
        watch: LoopWatch,
        leader_id: Callable[[], NodeId | None],
    ) -> None:
        self._metadata = metadata
        self._voters = voters
        self._leader_id = leader_id
        self._watch = watch

    def __call__(self) -> Readings:
        image, leader_id = self._metadata.image, self._leader_id()
        yield from read_role(NO_NODE if leader_id is None else leader_id, image.epoch, "observer")
        yield read(metrics.HIGH_WATERMARK, image.offset + 1)
        yield read(metrics.LOG_END_OFFSET, image.offset + 1)
        yield read(metrics.LOG_END_EPOCH, image.epoch)
        yield read(metrics.CURRENT_VOTE, NO_NODE)
        yield read(metrics.VOTERS, len(self._voters))
        yield read(metrics.POLL_IDLE, self._watch.idle_ratio())
        yield from read_features(image, leader_id)


def read_role(leader_id: int, epoch: int, state: str) -> Readings:
    yield read(metrics.CONTROLLER_STATE, 0)
    yield read(metrics.CURRENT_LEADER, leader_id)
    yield read(metrics.CURRENT_EPOCH, epoch)
    yield Reading(metrics.CURRENT_STATE, [((one,), 1) for one in STATES if one == state])


def read_features(image: MetadataImage, leader_id: NodeId | None) -> Readings:
    """What the cluster has finalized, in Kafka's spellings of the names, and what this node supports."""
    yield read(metrics.CONTROLLER_ID, NO_NODE if leader_id is None else leader_id)
    yield read(metrics.METADATA_VERSION, image.features.get(METADATA_VERSION, 0))
    yield Reading(
        metrics.FINALIZED_LEVEL, [((_camel_case(name),), level) for name, level in sorted(image.features.items())]
    )
    supported = [(name.replace(".", "-"), feature.supported) for name, feature in sorted(FEATURES.items())]
    yield Reading(metrics.SUPPORTED_MIN, [((name,), levels.min_level) for name, levels in supported])
    yield Reading(metrics.SUPPORTED_MAX, [((name,), levels.max_level) for name, levels in supported])


def registration_state(broker: BrokerRegistration) -> int:
    """Kafka: `BrokerRegistrationState`."""
    if broker.is_fenced:
        return FENCED
    return CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else ACTIVE


def _camel_case(feature_name: str) -> str:
    first, *others = feature_name.split(".")
    return first + "".join(word.capitalize() for word in others)
