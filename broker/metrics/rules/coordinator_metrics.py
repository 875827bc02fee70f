"""Group and transaction coordinators."""

from __future__ import annotations

from typing import Final

from .metric import attribute, count, own, times, value

GROUPS: Final = "kafka.coordinator.group:type=GroupMetadataManager,name="
TRANSACTIONS: Final = "kafka.server:type=transaction-coordinator-metrics"
VERIFICATION: Final = "kafka.server:type=AddPartitionsToTxnManager,name="
RUNTIME: Final = "kafka.server:type=group-coordinator-metrics"

GROUP_COUNT: Final = value(f"{GROUPS}NumGroups", "Groups that this node coordinates.")
GROUPS_EMPTY: Final = value(f"{GROUPS}NumGroupsEmpty", "Classic groups without members.")
GROUPS_PREPARING: Final = value(f"{GROUPS}NumGroupsPreparingRebalance", "Classic groups that wait for members.")
GROUPS_COMPLETING: Final = value(
    f"{GROUPS}NumGroupsCompletingRebalance", "Classic groups that wait for their leader's assignment."
)
GROUPS_STABLE: Final = value(f"{GROUPS}NumGroupsStable", "Classic groups whose members have their assignments.")
OFFSET_COUNT: Final = value(f"{GROUPS}NumOffsets", "Committed offsets that this node keeps.")

GROUPS_BY_PROTOCOL: Final = attribute(RUNTIME, "group-count", "Groups, by protocol.", "protocol")
CONSUMER_GROUPS: Final = attribute(
    RUNTIME, "consumer-group-count", "Groups of the consumer protocol (KIP-848), by state.", "state"
)
CLASSIC_GROUPS: Final = attribute(RUNTIME, "classic-group-count", "Classic groups, by state.", "state")
PARTITIONS: Final = attribute(
    RUNTIME, "num-partitions", "Partitions of __consumer_offsets with a coordinator here, by state.", "state"
)
MEMBERS: Final = own("gauge", "penstock_group_members", "Members of groups, by protocol.", "protocol")
OFFSET_COMMITS: Final = attribute(RUNTIME, "offset-commit-count", "Offsets committed.")
OFFSET_EXPIRATIONS: Final = attribute(RUNTIME, "offset-expiration-count", "Offsets that expired.")
OFFSET_DELETIONS: Final = attribute(RUNTIME, "offset-deletion-count", "Offsets deleted by requests.")
CLASSIC_REBALANCES: Final = attribute(
    RUNTIME, "group-completed-rebalance-count", "Rebalances of classic groups that have completed."
)
CONSUMER_REBALANCES: Final = attribute(
    RUNTIME, "consumer-group-rebalance-count", "Group epochs that groups of the consumer protocol have begun."
)
LOAD_TIME_AVG: Final = attribute(
    RUNTIME, "partition-load-time-avg", "Milliseconds to load a partition of __consumer_offsets, of the last minute."
)
LOAD_TIME_MAX: Final = attribute(RUNTIME, "partition-load-time-max", "The longest of these.")

TRANSACTION_LOAD_TIME_AVG: Final = attribute(
    TRANSACTIONS, "partition-load-time-avg", "Milliseconds to load a partition of __transaction_state, likewise."
)
TRANSACTION_LOAD_TIME_MAX: Final = attribute(TRANSACTIONS, "partition-load-time-max", "The longest of these.")
UNLED_MARKERS: Final = value(
    "kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name=UnknownDestinationQueueSize",
    "Transaction markers that wait until their partitions have leaders.",
)
VERIFICATION_TIME: Final = times(
    f"{VERIFICATION}VerificationTimeMs", "Requests that ask a coordinator whether a transaction goes on (KIP-890)."
)
VERIFICATION_FAILURES: Final = count(
    f"{VERIFICATION}VerificationFailureRate", "Partitions that a transaction was not verified for."
)
TRANSACTIONAL_IDS: Final = own(
    "gauge", "penstock_transactional_ids", "Transactional ids that this node coordinates, by state.", "state"
)
TRANSACTION_PARTITIONS: Final = own(
    "gauge", "penstock_transaction_coordinators", "Partitions of __transaction_state with a coordinator here."
)
