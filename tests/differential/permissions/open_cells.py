"""The matrix with `allow.everyone.if.no.acl.found=true`: what makes an ACL be found, and for whom that closes what.

Each cell has things of its own, for here an ACL on a thing of one user closes it to all others. There are three times:
while no ACL is on the cluster and none on `*`; with one on the cluster; with one on `*` of every kind as well. These
ACLs name no user that asks, and only deny.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from differential.permissions.acl_states import (
    ANOTHER_HOST,
    DENY,
    NOTHING,
    AclState,
    Entry,
    Kind,
    Operation,
    Pattern,
)
from differential.permissions.cells import Place, Subject
from differential.permissions.probes import Probe

ANOTHER = "User:another"
QUESTIONS = (
    *("CreateTopics", "CreateTopics existing", "DeleteTopics", "DeleteTopics by id", "DeleteTopics absent"),
    *("CreatePartitions", "DescribeConfigs of topics", "DescribeConfigs of groups", "DescribeConfigs of the broker"),
    *("IncrementalAlterConfigs of topics", "IncrementalAlterConfigs of groups", "AlterConfigs of the broker"),
    *("ListConfigResources", "Produce v13", "Produce v12 absent", "Produce transactional", "Fetch v12", "Fetch v13"),
    *("Fetch unknown id", "ListOffsets", "ListOffsets absent", "OffsetForLeaderEpoch", "DeleteRecords"),
    *("Metadata v13", "Metadata by id", "Metadata of all v13", "Metadata of the cluster", "Metadata absent"),
    *("Metadata creates", "DescribeTopicPartitions", "DescribeTopicPartitions of all", "DescribeProducers"),
    *("DescribeCluster", "DescribeQuorum", "UpdateFeatures", "UnregisterBroker", "DescribeLogDirs"),
    *("AlterReplicaLogDirs", "ElectLeaders v2", "AlterPartitionReassignments", "ListPartitionReassignments"),
    *("DescribeAcls", "CreateAcls of an invalid one", "DeleteAcls", "DescribeClientQuotas", "AlterClientQuotas"),
    *("DescribeUserScramCredentials", "CreateDelegationToken", "DescribeDelegationToken"),
    *("DescribeDelegationToken of all", "OffsetCommit v9", "OffsetCommit v10", "OffsetFetch v8", "OffsetFetch v10"),
    *("OffsetFetch of all v9", "OffsetDelete", "FindCoordinator of groups", "JoinGroup", "SyncGroup", "Heartbeat"),
    *("LeaveGroup", "DescribeGroups v6", "DescribeGroups absent", "ListGroups v5", "DeleteGroups"),
    *("ConsumerGroupHeartbeat v1", "ConsumerGroupHeartbeat by expression", "ConsumerGroupDescribe v1"),
    *("InitProducerId", "InitProducerId transactional", "FindCoordinator of a transaction"),
    *("AddPartitionsToTxn v3", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit v5", "WriteTxnMarkers"),
    *("DescribeTransactions", "ListTransactions"),
)
"""Of each rule one: versions of an API decide alike, as the closed matrix shows."""

_OF_EACH_RULE = frozenset(
    {
        *("CreateTopics", "Produce v13", "Fetch v13", "ListOffsets", "Metadata v13", "Metadata of all v13"),
        *("CreateDelegationToken", "DescribeDelegationToken of all", "OffsetFetch v8", "DescribeGroups v6"),
        *("ListGroups v5", "InitProducerId", "InitProducerId transactional", "ListTransactions"),
    }
)
"""Asked of every way in which an ACL may be about a thing; the others are asked of some."""
_LEAST = {Kind.USER: Operation.DESCRIBE_TOKENS}
# An operation of every kind.


def _acl(kind: Kind, name: str) -> dict[str, object]:
    return {
        "resource_type": int(kind),
        "resource_name": name,
        "resource_pattern_type": 3,
        "principal": ANOTHER,
        "host": "*",
        "operation": int(_least(kind)),
        "permission_type": DENY,
    }


def _least(kind: Kind) -> Operation:
    return _LEAST.get(kind, Operation.DESCRIBE)


CLUSTER_ACL = _acl(Kind.CLUSTER, "kafka-cluster")
NAMED = (Kind.TOPIC, Kind.GROUP, Kind.TRANSACTIONAL_ID, Kind.DELEGATION_TOKEN, Kind.USER)
WILDCARD_ACLS = tuple(_acl(kind, "*") for kind in NAMED)


def _states(probe: Probe, kind: Kind) -> Iterator[AclState]:
    """Of the ACLs on one thing of a kind that has names."""
    least = _least(kind)
    yield NOTHING
    yield AclState(name=least.name, entries=(Entry(operation=least),))
    yield AclState(name="nothing, as a super user", entries=(Entry(permission=DENY),), is_super_user=True)
    yield AclState(
        name=f"not {least.name} for another", entries=(Entry(operation=least, permission=DENY, principal=ANOTHER),)
    )
    if probe.name not in _OF_EACH_RULE:
        return
    yield AclState(name=f"not {least.name}", entries=(Entry(operation=least, permission=DENY),))
    yield AclState(name="ALL for another", entries=(Entry(principal=ANOTHER),))
    yield AclState(name="ALL from elsewhere", entries=(Entry(host=ANOTHER_HOST),))
    yield AclState(name="ALL by prefix for another", entries=(Entry(pattern=Pattern.PREFIX, principal=ANOTHER),))
    yield AclState(
        name="not ALL by prefix for another",
        entries=(Entry(pattern=Pattern.PREFIX, permission=DENY, principal=ANOTHER),),
    )
    yield AclState(
        name="not ALL by prefix from elsewhere",
        entries=(Entry(pattern=Pattern.PREFIX, permission=DENY, host=ANOTHER_HOST),),
    )
    yield AclState(name="ALL on a longer name for another", entries=(Entry(pattern=Pattern.LONGER, principal=ANOTHER),))
    yield AclState(
        name="ALL on a shorter name for another", entries=(Entry(pattern=Pattern.SHORTER, principal=ANOTHER),)
    )


_ON_THE_CLUSTER = (
    NOTHING,
    AclState(name="DESCRIBE", entries=(Entry(operation=Operation.DESCRIBE),)),
    AclState(name="not ALTER", entries=(Entry(operation=Operation.ALTER, permission=DENY),)),
    AclState(name="nothing, as a super user", entries=(), is_super_user=True),
)
_UNDER_A_WILDCARD = (NOTHING, AclState(name="ALL", entries=(Entry(),)))
_WRITES_BY_PREFIX = (
    AclState(name="WRITE by prefix", entries=(Entry(operation=Operation.WRITE, pattern=Pattern.PREFIX),)),
    AclState(
        name="WRITE, not ALL by prefix",
        entries=(Entry(operation=Operation.WRITE), Entry(pattern=Pattern.PREFIX, permission=DENY)),
    ),
)


def without_acls(probes: Sequence[Probe]) -> Iterator[Place]:
    for probe in probes:
        for kind in probe.touches:
            states = (NOTHING,) if kind is Kind.CLUSTER else tuple(_states(probe, kind))
            yield from _places(probe, kind, states, "")


def with_acls_on_the_cluster(probes: Sequence[Probe]) -> Iterator[Place]:
    for probe in probes:
        if Kind.CLUSTER in probe.touches:
            for kind in probe.touches:
                states = _ON_THE_CLUSTER if kind is Kind.CLUSTER else tuple(_states(probe, kind))
                yield from _places(probe, kind, states, "the cluster closed")


def with_acls_on_everything(probes: Sequence[Probe]) -> Iterator[Place]:
    """And on the cluster still."""
    for probe in probes:
        for kind in probe.touches:
            if kind is not Kind.CLUSTER:
                more = (*_states(probe, kind), *_WRITES_BY_PREFIX)[1:] if probe.is_alone else ()
                yield from _places(probe, kind, (*_UNDER_A_WILDCARD, *more), "all closed")


def _places(probe: Probe, kind: Kind, states: Sequence[AclState], when: str) -> Iterator[Place]:
    for number, state in enumerate(states):
        # Names end with this, and what a prefix of one names must be no other: what differs comes before the end.
        words = [when.replace(" ", "-"), f"{number:02}", kind.name.lower().replace("_", "-")]
        if probe.is_alone:
            words.append(probe.slug)
        user = "-".join(word for word in words if word)
        subject = Subject(user=user, kind=kind, state=state, when=when, is_allowed_the_rest=when == "all closed")
        yield Place(probe=probe, subject=subject)
