"""The metadata quorum: the controller, Raft, and the metadata that this node has."""

from __future__ import annotations

from typing import Final

from .metric import attribute, own, rate, value

CONTROLLER: Final = "kafka.controller:type=KafkaController,name="
RAFT: Final = "kafka.server:type=raft-metrics"
SNAPSHOTS: Final = "kafka.server:type=SnapshotEmitter,name="
LOADER: Final = "kafka.server:type=MetadataLoader,name="
FEATURES: Final = "kafka.server:type=node-metrics"
METADATA: Final = "kafka.server:type=broker-metadata-metrics"

ACTIVE_CONTROLLER: Final = value(f"{CONTROLLER}ActiveControllerCount", "1 on the active controller, else 0.")
CONTROLLER_STATE: Final = value(
    f"{CONTROLLER}ControllerState",
    "0, as of an idle controller of Apache Kafka before 4.0: dashboards of then find the nodes by it.",
)
ACTIVE_BROKERS: Final = value(f"{CONTROLLER}ActiveBrokerCount", "Brokers that are registered and not fenced.")
FENCED_BROKERS: Final = value(f"{CONTROLLER}FencedBrokerCount", "Brokers that are registered and fenced.")
TOPICS: Final = value(f"{CONTROLLER}GlobalTopicCount", "Topics of the cluster.")
PARTITIONS: Final = value(f"{CONTROLLER}GlobalPartitionCount", "Partitions of the cluster.")
OFFLINE_PARTITIONS: Final = value(f"{CONTROLLER}OfflinePartitionsCount", "Partitions without a leader.")
IMBALANCE: Final = value(
    f"{CONTROLLER}PreferredReplicaImbalanceCount", "Partitions that another than their first replica leads."
)
METADATA_ERRORS: Final = value(
    f"{CONTROLLER}MetadataErrorCount", "Metadata records that could not be applied: the node stops at the first."
)
APPLIED_OFFSET: Final = value(f"{CONTROLLER}LastAppliedRecordOffset", "The last metadata record applied here.")
APPLIED_TIMESTAMP: Final = value(f"{CONTROLLER}LastAppliedRecordTimestamp", "Its time, in ms since 1970.")
APPLIED_LAG: Final = value(f"{CONTROLLER}LastAppliedRecordLagMs", "Its age, 0 on the active controller.")
COMMITTED_OFFSET: Final = value(f"{CONTROLLER}LastCommittedRecordOffset", "The last metadata record committed.")
TIMED_OUT: Final = value(f"{CONTROLLER}TimedOutBrokerHeartbeatCount", "Sessions of brokers that timed out here.")
NEW_CONTROLLERS: Final = value(f"{CONTROLLER}NewActiveControllersCount", "Active controllers that this node saw.")
UNCLEAN_ELECTIONS: Final = rate(
    "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
    "Leaders elected by this controller that may lack committed records.",
)
ELIGIBLE_ELECTIONS: Final = rate(
    "kafka.controller:type=ControllerStats,name=ElectionFromEligibleLeaderReplicasPerSec",
    "Leaders elected by this controller from the ELR (KIP-966).",
)
REGISTRATION_STATE: Final = value(
    f"{CONTROLLER}BrokerRegistrationState", "10 fenced, 20 in controlled shutdown, 30 active.", "broker"
)
SHUTDOWNS: Final = value(f"{CONTROLLER}ControlledShutdownBrokerCount", "Brokers in controlled shutdown.")
HEARTBEAT_AGE: Final = value(
    f"{CONTROLLER}TimeSinceLastHeartbeatReceivedMs",
    "Milliseconds since the last heartbeat of each broker, told by the active controller.",
    "broker",
)
SNAPSHOT_BYTES: Final = value(
    f"{SNAPSHOTS}LatestSnapshotGeneratedBytes", "Size of the last snapshot that this node made since its start."
)
SNAPSHOT_AGE: Final = value(f"{SNAPSHOTS}LatestSnapshotGeneratedAgeMs", "Its age; without one, the time since start.")
FAST_FENCINGS: Final = own(
    "counter", "penstock_fast_fencings_total", "Brokers fenced by this controller because their process was gone."
)
WRONG_FENCINGS: Final = own(
    "counter", "penstock_fast_fencings_wrong_total", "Of these, brokers that were alive (decision 6)."
)

CURRENT_LEADER: Final = attribute(RAFT, "current-leader", "The leader of the quorum, -1 while it is unknown.")
CURRENT_EPOCH: Final = attribute(RAFT, "current-epoch", "The epoch of the quorum.")
CURRENT_STATE: Final = attribute(
    RAFT, "current-state", "1 for what this node is: leader, follower, unattached or observer.", "current_state"
)
CURRENT_VOTE: Final = attribute(
    RAFT, "current-vote", "The voter that has this one's vote in the current epoch, -1 without a vote."
)
HIGH_WATERMARK: Final = attribute(RAFT, "high-watermark", "The first metadata record that is not committed.")
LOG_END_OFFSET: Final = attribute(RAFT, "log-end-offset", "The end of this node's metadata log.")
LOG_END_EPOCH: Final = attribute(RAFT, "log-end-epoch", "The epoch of the last record there.")
UNKNOWN_VOTERS: Final = attribute(
    RAFT, "number-unknown-voter-connections", "Voters that this one has no connection to."
)
VOTERS: Final = attribute(RAFT, "number-of-voters", "Voters of the quorum.")
OBSERVERS: Final = attribute(RAFT, "number-of-observers", "Brokers that follow the active controller, 0 elsewhere.")
COMMIT_LATENCY_AVG: Final = attribute(
    RAFT, "commit-latency-avg", "Milliseconds from a proposal to its commit, of the last minute."
)
COMMIT_LATENCY_MAX: Final = attribute(RAFT, "commit-latency-max", "The longest of these.")
ELECTION_LATENCY_AVG: Final = attribute(
    RAFT, "election-latency-avg", "Milliseconds without a known leader, of the elections of the last minute."
)
ELECTION_LATENCY_MAX: Final = attribute(RAFT, "election-latency-max", "The longest of these.")
APPEND_RATE: Final = attribute(
    RAFT, "append-records-rate", "Records appended to the metadata log each second by the leader, of the last minute."
)
FETCH_RATE: Final = attribute(
    RAFT, "fetch-records-rate", "Records taken from the leader each second, of the last minute."
)
POLL_IDLE: Final = attribute(RAFT, "poll-idle-ratio-avg", "Part of the last minute in which the event loop waited.")

CONTROLLER_ID: Final = value(f"{LOADER}CurrentControllerId", "The active controller, -1 while it is unknown.")
METADATA_VERSION: Final = value(f"{LOADER}CurrentMetadataVersion", "The finalized level of metadata.version.")
FINALIZED_LEVEL: Final = value(f"{LOADER}FinalizedLevel", "The finalized level of each feature.", "featureName")
SUPPORTED_MIN: Final = attribute(
    FEATURES, "minimum-supported-level", "The lowest level of a feature that this node supports.", "feature_name"
)
SUPPORTED_MAX: Final = attribute(
    FEATURES, "maximum-supported-level", "The highest level of a feature that this node supports.", "feature_name"
)
BROKER_APPLIED_OFFSET: Final = attribute(
    METADATA, "last-applied-record-offset", "The last metadata record that this broker has applied."
)
BROKER_APPLIED_TIMESTAMP: Final = attribute(METADATA, "last-applied-record-timestamp", "Its time, in ms since 1970.")
BROKER_APPLIED_LAG: Final = attribute(METADATA, "last-applied-record-lag-ms", "Its age.")
LOAD_ERRORS: Final = attribute(METADATA, "metadata-load-error-count", "0: the node stops at the first.")
APPLY_ERRORS: Final = attribute(METADATA, "metadata-apply-error-count", "0: the node stops at the first.")
