"""The table of APIs: every key of Apache Kafka 4.3.1 with its stable versions. Kafka: `ApiKeys`, `ApiMessageType`.

It says what the protocol is; what a node answers is what it has handlers for. Unstable versions (InitProducerId 6) are
left out, as Kafka leaves them out until `unstable.api.versions.enable`.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from msgspec import Struct


class ApiKey(IntEnum):
    """The first two bytes of a request."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


class Api(Struct, frozen=True, kw_only=True):
    """One API. `min_version` to `max_version` (both inside) can be served; `kips` names what brought a version."""

    key: ApiKey
    name: str
    min_version: int
    max_version: int
    first_flexible_version: int | None
    on_broker: bool
    on_controller: bool
    kips: Mapping[int, str]

    @property
    def advertised_min_version(self) -> int:
        """What ApiVersions says. Produce is shown from 0, though 0 to 2 are refused: a librdkafka bug (KAFKA-18659)."""
        return 0 if self.key == ApiKey.PRODUCE else self.min_version

    def is_flexible(self, version: int) -> bool:
        """Whether bodies of `version` have compact lengths and tagged fields (KIP-482)."""
        return self.first_flexible_version is not None and version >= self.first_flexible_version

    def has_version(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


def request_header_version(key: int, version: int) -> int:
    """2 for flexible versions, else 1. KeyError for an unknown key."""
    return 2 if APIS[key].is_flexible(version) else 1


def response_header_version(key: int, version: int) -> int:
    """1 for flexible versions, else 0; for ApiVersions always 0: its client does not know the node yet (KIP-511)."""
    return 1 if key != ApiKey.API_VERSIONS and APIS[key].is_flexible(version) else 0


_BROKER, _CONTROLLER, _BOTH = (True, False), (False, True), (True, True)

# Key, name, first and last version, first flexible version, listeners, and the KIPs that brought each version.
# fmt: off
_TABLE: tuple[tuple[int, str, int, int, int | None, tuple[bool, bool], str], ...] = (
    (0, "Produce", 3, 13, 9, _BROKER, "3:98 4:112 5:107 6:219 7:110 8:467 9:482 10:951 11:890 12:890 13:516"),
    (1, "Fetch", 4, 18, 12, _BOTH,
        "4:98 5:107 7:227 8:219 9:320 10:110 11:392 12:482+595 13:516 14:405 15:903 16:951 17:853 18:1166"),
    (2, "ListOffsets", 1, 11, 6, _BROKER, "1:79 2:98 3:219 4:320 5:207 6:482 7:734 8:405 9:1005 10:1075 11:1023"),
    (3, "Metadata", 0, 13, 9, _BROKER,
        "1:4 2:78 3:124 4:117 5:112 6:219 7:320 8:430 9:482 10:516 11:700 12:516 13:1102"),
    (8, "OffsetCommit", 2, 10, 8, _BROKER, "3:124 4:219 5:211 6:320 7:345 8:482 9:848 10:848"),
    (9, "OffsetFetch", 1, 10, 6, _BROKER, "2:88 3:124 4:219 5:320 6:482 7:447 8:709 9:848 10:848"),
    (10, "FindCoordinator", 0, 6, 3, _BROKER, "1:98 2:219 3:482 4:699 5:890 6:932"),
    (11, "JoinGroup", 0, 9, 6, _BROKER, "1:62 2:124 3:219 4:394 5:345 6:482 7:559 8:800 9:814"),
    (12, "Heartbeat", 0, 4, 4, _BROKER, "1:124 2:219 3:345 4:482"),
    (13, "LeaveGroup", 0, 5, 4, _BROKER, "1:124 2:219 3:345 4:482 5:800"),
    (14, "SyncGroup", 0, 5, 4, _BROKER, "1:124 2:219 3:345 4:482 5:559"),
    (15, "DescribeGroups", 0, 6, 5, _BROKER, "1:124 2:219 3:430 4:345 5:482 6:1043"),
    (16, "ListGroups", 0, 5, 3, _BROKER, "1:124 2:219 3:482 4:518 5:848"),
    (17, "SaslHandshake", 0, 1, None, _BOTH, "0:43 1:152"),
    (18, "ApiVersions", 0, 4, 3, _BOTH, "0:35 1:124 2:219 3:482+511 4:1022"),
    (19, "CreateTopics", 2, 7, 5, _BOTH, "2:124 3:219 4:464 5:482+525 6:599 7:516"),
    (20, "DeleteTopics", 1, 6, 4, _BOTH, "1:124 2:219 3:322 4:482 5:599 6:516"),
    (21, "DeleteRecords", 0, 2, 2, _BROKER, "0:107 1:219 2:482"),
    (22, "InitProducerId", 0, 5, 2, _BROKER, "0:98 1:219 2:482 3:360 4:588 5:890"),
    (23, "OffsetForLeaderEpoch", 2, 4, 4, _BROKER, "2:320 3:320 4:482"),
    (24, "AddPartitionsToTxn", 0, 5, 3, _BROKER, "0:98 1:219 2:588 3:482 4:890 5:890"),
    (25, "AddOffsetsToTxn", 0, 4, 3, _BROKER, "0:98 1:219 2:588 3:482 4:890"),
    (26, "EndTxn", 0, 5, 3, _BROKER, "0:98 1:219 2:588 3:482 4:890 5:890"),
    (27, "WriteTxnMarkers", 1, 2, 1, _BROKER, "1:482 2:1228"),
    (28, "TxnOffsetCommit", 0, 5, 3, _BROKER, "0:98 1:219 2:320 3:447+482 4:890 5:890"),
    (29, "DescribeAcls", 1, 3, 2, _BOTH, "1:290 2:482 3:373"),
    (30, "CreateAcls", 1, 3, 2, _BOTH, "1:290 2:482 3:373"),
    (31, "DeleteAcls", 1, 3, 2, _BOTH, "1:290 2:482 3:373"),
    (32, "DescribeConfigs", 1, 4, 4, _BOTH, "1:226 2:219 3:569 4:482"),
    (33, "AlterConfigs", 0, 2, 2, _BOTH, "0:133 1:219 2:482"),
    (34, "AlterReplicaLogDirs", 1, 2, 2, _BROKER, "1:113+219 2:482"),
    (35, "DescribeLogDirs", 1, 5, 2, _BROKER, "1:113+219 2:482 3:784 4:827 5:1066"),
    (36, "SaslAuthenticate", 0, 2, 2, _BOTH, "0:152 1:368 2:482"),
    (37, "CreatePartitions", 0, 3, 2, _BOTH, "0:195 1:219 2:482 3:599"),
    (38, "CreateDelegationToken", 1, 3, 2, _BOTH, "1:48+219 2:482 3:373"),
    (39, "RenewDelegationToken", 1, 2, 2, _BOTH, "1:48+219 2:482"),
    (40, "ExpireDelegationToken", 1, 2, 2, _BOTH, "1:48+219 2:482"),
    (41, "DescribeDelegationToken", 1, 3, 2, _BOTH, "1:48+219 2:482 3:373"),
    (42, "DeleteGroups", 0, 2, 2, _BROKER, "0:229 1:219 2:482"),
    (43, "ElectLeaders", 0, 2, 2, _BOTH, "0:183 1:460 2:482"),
    (44, "IncrementalAlterConfigs", 0, 1, 1, _BOTH, "0:339 1:482"),
    (45, "AlterPartitionReassignments", 0, 1, 0, _BOTH, "0:455 1:860"),
    (46, "ListPartitionReassignments", 0, 0, 0, _BOTH, "0:455"),
    (47, "OffsetDelete", 0, 0, None, _BROKER, "0:496"),
    (48, "DescribeClientQuotas", 0, 1, 1, _BROKER, "0:546 1:482"),
    (49, "AlterClientQuotas", 0, 1, 1, _BOTH, "0:546 1:482"),
    (50, "DescribeUserScramCredentials", 0, 0, 0, _BOTH, "0:554"),
    (51, "AlterUserScramCredentials", 0, 0, 0, _BOTH, "0:554"),
    (52, "Vote", 0, 2, 0, _CONTROLLER, "0:595 1:853 2:996"),
    (53, "BeginQuorumEpoch", 0, 1, 1, _CONTROLLER, "0:595 1:853"),
    (54, "EndQuorumEpoch", 0, 1, 1, _CONTROLLER, "0:595 1:853"),
    (55, "DescribeQuorum", 0, 2, 0, _BOTH, "0:595 1:836 2:853"),
    (56, "AlterPartition", 2, 3, 2, _CONTROLLER, "2:841 3:903"),
    (57, "UpdateFeatures", 0, 2, 0, _BOTH, "0:584 1:778 2:1022"),
    (58, "Envelope", 0, 0, 0, _CONTROLLER, "0:590"),
    (59, "FetchSnapshot", 0, 1, 0, _CONTROLLER, "0:630 1:853"),
    (60, "DescribeCluster", 0, 2, 0, _BOTH, "0:700 1:919 2:1073"),
    (61, "DescribeProducers", 0, 0, 0, _BROKER, "0:664"),
    (62, "BrokerRegistration", 0, 4, 0, _CONTROLLER, "0:631 1:866 2:858 3:966 4:1022"),
    (63, "BrokerHeartbeat", 0, 2, 0, _CONTROLLER, "0:631 1:858 2:1066"),
    (64, "UnregisterBroker", 0, 0, 0, _BOTH, "0:631"),
    (65, "DescribeTransactions", 0, 0, 0, _BROKER, "0:664"),
    (66, "ListTransactions", 0, 2, 0, _BROKER, "0:664 1:994 2:1152"),
    (67, "AllocateProducerIds", 0, 0, 0, _CONTROLLER, "0:730"),
    (68, "ConsumerGroupHeartbeat", 0, 1, 0, _BROKER, "0:848 1:848"),
    (69, "ConsumerGroupDescribe", 0, 1, 0, _BROKER, "0:848 1:1099"),
    (70, "ControllerRegistration", 0, 0, 0, _CONTROLLER, "0:919"),
    (71, "GetTelemetrySubscriptions", 0, 0, 0, _BROKER, "0:714"),
    (72, "PushTelemetry", 0, 0, 0, _BROKER, "0:714"),
    (73, "AssignReplicasToDirs", 0, 0, 0, _CONTROLLER, "0:858"),
    (74, "ListConfigResources", 0, 1, 0, _BROKER, "0:1000 1:1142"),
    (75, "DescribeTopicPartitions", 0, 0, 0, _BROKER, "0:966"),
    (76, "ShareGroupHeartbeat", 1, 1, 1, _BROKER, "1:932"),
    (77, "ShareGroupDescribe", 1, 1, 1, _BROKER, "1:932"),
    (78, "ShareFetch", 1, 2, 1, _BROKER, "1:932 2:1206"),
    (79, "ShareAcknowledge", 1, 2, 1, _BROKER, "1:932 2:1222"),
    (80, "AddRaftVoter", 0, 1, 0, _BOTH, "0:853 1:1186"),
    (81, "RemoveRaftVoter", 0, 0, 0, _BOTH, "0:853"),
    (82, "UpdateRaftVoter", 0, 0, 0, _CONTROLLER, "0:853"),
    (83, "InitializeShareGroupState", 0, 0, 0, _BROKER, "0:932"),
    (84, "ReadShareGroupState", 0, 0, 0, _BROKER, "0:932"),
    (85, "WriteShareGroupState", 0, 1, 0, _BROKER, "0:932 1:1226"),
    (86, "DeleteShareGroupState", 0, 0, 0, _BROKER, "0:932"),
    (87, "ReadShareGroupStateSummary", 0, 1, 0, _BROKER, "0:932 1:1226"),
    (88, "StreamsGroupHeartbeat", 0, 0, 0, _BROKER, "0:1071"),
    (89, "StreamsGroupDescribe", 0, 0, 0, _BROKER, "0:1071"),
    (90, "DescribeShareGroupOffsets", 0, 1, 0, _BROKER, "0:932 1:1226"),
    (91, "AlterShareGroupOffsets", 0, 0, 0, _BROKER, "0:932"),
    (92, "DeleteShareGroupOffsets", 0, 0, 0, _BROKER, "0:932"),
)
# fmt: on


def _kips(text: str) -> Mapping[int, str]:
    by_version = (entry.split(":") for entry in text.split())
    return MappingProxyType(
        {int(version): ", ".join(f"KIP-{number}" for number in kips.split("+")) for version, kips in by_version}
    )


APIS: Mapping[int, Api] = MappingProxyType(
    {
        key: Api(
            key=ApiKey(key),
            name=name,
            min_version=min_version,
            max_version=max_version,
            first_flexible_version=first_flexible_version,
            on_broker=listeners[0],
            on_controller=listeners[1],
            kips=_kips(kips),
        )
        for key, name, min_version, max_version, first_flexible_version, listeners, kips in _TABLE
    }
)
