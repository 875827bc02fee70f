"""What the doctor finds in a look at a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.client.operating.cluster_look import ClusterLook, NodeLook, parse_traffic
from penstock.client.operating.doctor_command import finding_lines
from penstock.client.operating.findings import Severity, cluster_findings, summary_sentence
from penstock.client.operating.status_view import head_lines, node_rows, quorum_rows, rates_between, status_json
from penstock.protocol.rest.health import Health, Reason
from penstock.protocol.rest.nodes import Node, NodeDirectory, NodeList
from penstock.protocol.rest.partition_map import PartitionMap, TopicMap
from penstock.protocol.rest.quorum import Quorum, QuorumReplica
from penstock.protocol.rest.transactions import OpenTransaction


def node(node_id: int, **more: Any) -> Node:
    directory = NodeDirectory(
        path="/data", error=None, total_bytes=1000, free_bytes=more.pop("free_bytes", 500), log_bytes=1
    )
    facts: dict[str, Any] = {
        "roles": ["broker", "controller"],
        "state": "running",
        "is_drained": False,
        "leader_count": 4,
        "preferred_leader_count": 4,
        "log_dirs": [directory],
        **more,
    }
    return Node(
        node_id=node_id,
        rack=None,
        endpoints=[],
        admin=None,
        is_asked_node=node_id == 1,
        is_quorum_leader=node_id == 1,
        broker_epoch=1,
        replica_count=8,
        out_of_sync_count=0,
        **facts,
    )


def replica(node_id: int, **more: Any) -> QuorumReplica:
    facts = {"log_end_offset": 9, "lag": 0, "last_fetch_age_ms": 100, "is_leader": node_id == 1, **more}
    return QuorumReplica(node_id=node_id, last_caught_up_age_ms=None, **facts)


def quorum(*voters: QuorumReplica, **more: Any) -> Quorum:
    facts: dict[str, Any] = {"is_known_by_leader": True, "reason": None, "leader_id": 1, **more}
    return Quorum(epoch=3, high_watermark=9, voters=list(voters or map(replica, (1, 2, 3))), observers=[], **facts)


def topic(name: str, leaders: list[int], in_sync: int = 3, replicas: int = 3) -> TopicMap:
    count = len(leaders)
    return TopicMap(topic_name=name, leaders=leaders, in_sync=[in_sync] * count, replicas=[replicas] * count)


def look(*nodes: Node, topics: tuple[TopicMap, ...] = (topic("t", [1, 2, 3]),), **more: Any) -> ClusterLook:
    listed = NodeList(
        cluster_id="c", metadata_offset=1, metadata_ms=1, quorum_leader_id=1, nodes=list(nodes or map(node, (1, 2, 3)))
    )
    facts: dict[str, Any] = {"quorum": quorum(), "looks": (), **more}
    return ClusterLook(nodes=listed, partitions=PartitionMap(offset=1, timestamp_ms=1, topics=list(topics)), **facts)


def kinds(taken: ClusterLook) -> set[str]:
    return {finding.kind for finding in cluster_findings(taken)}


def test_nothing_is_wrong_with_a_cluster_that_is_well() -> None:
    assert cluster_findings(look()) == ()
    assert summary_sentence(()) == "Nothing is wrong."


def test_the_worst_is_said_first_and_the_rest_counted() -> None:
    sick = look(
        node(1),
        node(2, state="fenced"),
        node(3),
        quorum=quorum(is_known_by_leader=False, reason="No quorum: 1 of 3 voters, 2 needed.", leader_id=None),
    )
    found = cluster_findings(sick)
    assert [finding.kind for finding in found] == ["no-quorum", "fenced-broker"]
    assert summary_sentence(found) == "No quorum: 1 of 3 voters, 2 needed. And 1 more: `penstock doctor`."
    assert "decommission 2 --wait --unregister" in found[1].advice


@pytest.mark.parametrize(
    ("taken", "kind"),
    [
        (look(quorum=quorum(replica(1), replica(2, last_fetch_age_ms=None), replica(3))), "voter-not-heard"),
        (look(quorum=quorum(replica(1), replica(2, last_fetch_age_ms=9_000), replica(3))), "voter-not-heard"),
        (look(quorum=quorum(replica(1), replica(2))), "even-voters"),
        (look(node(1), node(2, unanswered="no connection"), node(3)), "silent-broker"),
        (look(node(1), node(2, is_drained=True), node(3)), "drained-broker"),
        (look(looks=(NodeLook(node_id=2, unreachable="refused"),)), "silent-admin"),
        (look(topics=(topic("t", [1, -1]),)), "offline-partitions"),
        (look(topics=(topic("t", [1], in_sync=1),), min_insync_replicas={"t": 2}), "under-min-isr"),
        (look(topics=(topic("t", [1], in_sync=2),)), "under-replicated"),
        (look(node(1, free_bytes=50), node(2), node(3)), "disk-almost-full"),
        (look(node(1, leader_count=2), node(2, leader_count=6), node(3)), "unbalanced-leaders"),
        (look(topics=(topic("t", [1], in_sync=1, replicas=1),)), "single-replica"),
        (look(min_insync_replicas={"t": 3}), "tight-min-isr"),
        (look(topics=(topic("__consumer_offsets", [1], in_sync=1, replicas=1),)), "internal-replication"),
        (look(looks=(NodeLook(node_id=1, version="1"), NodeLook(node_id=2, version="2"))), "versions-differ"),
        (look(looks=(NodeLook(node_id=1, clock_ms=0), NodeLook(node_id=2, clock_ms=1_500))), "clocks-differ"),
    ],
)
def test_one_thing_that_is_wrong_is_found_alone(taken: ClusterLook, kind: str) -> None:
    found = cluster_findings(taken)
    # Too few in-sync replicas are under-replicated as well.
    assert {finding.kind for finding in found} - {"under-replicated"} == {kind} - {"under-replicated"}
    assert all(finding.advice.rstrip("`.") for finding in found)


def test_thresholds_have_two_sides() -> None:
    assert kinds(look(quorum=quorum(replica(1), replica(2, last_fetch_age_ms=4_000), replica(3)))) == set()
    assert kinds(look(node(1, free_bytes=150), node(2), node(3))) == set()
    assert kinds(look(looks=(NodeLook(node_id=1, clock_ms=0), NodeLook(node_id=2, clock_ms=900)))) == set()
    # A broker that is away cannot lead what it should: the fence is the finding.
    assert kinds(look(node(1, leader_count=2), node(2, state="fenced"), node(3))) == {"fenced-broker"}
    full = cluster_findings(look(node(1, free_bytes=10), node(2), node(3)))
    assert [finding.severity for finding in full] == [Severity.OUTAGE]


def test_failed_directory_hanging_transaction_and_reasons_of_a_node_are_found() -> None:
    failed = NodeDirectory(path="/d2", error="KAFKA_STORAGE_ERROR", total_bytes=None, free_bytes=None, log_bytes=None)
    hanging = OpenTransaction(
        topic="t", partition=1, producer_id=7, producer_epoch=0, coordinator_epoch=0, start_offset=5, idle_ms=1
    )
    stopping = Health(
        node_id=2, is_ok=False, state="running", reasons=[Reason(kind="controlled-shutdown", sentence="It stops.")]
    )
    found = cluster_findings(
        look(
            node(1, log_dirs=[failed]),
            node(2),
            node(3),
            hanging=(hanging,),
            looks=(NodeLook(node_id=2, health=stopping),),
        )
    )
    assert [finding.kind for finding in found] == [
        "not-ready-controlled-shutdown",
        "failed-log-dir",
        "hanging-transaction",
    ]
    assert "--topic t --partition 1 --start-offset 5" in found[2].advice
    assert finding_lines(found)[0] == "danger: Node 2 is not ready: It stops."


def test_status_shows_nodes_and_what_is_not_known_of_voters() -> None:
    taken = look(
        node(1),
        node(2, state="fenced", log_dirs=None),
        node(3, is_drained=True),
        quorum=quorum(replica(1), replica(2, log_end_offset=None, lag=None, last_fetch_age_ms=None), replica(3)),
    )
    assert (
        head_lines(taken, ())[1]
        == "cluster c: 3 nodes, 1 topic, 3 partitions; node 1 leads the metadata quorum, epoch 3"
    )
    rows = node_rows(taken, {})
    assert [row[0] for row in rows] == ["1*", "2", "3"]
    assert [row[2] for row in rows] == ["running", "fenced", "drained"]
    assert [row[6] for row in rows] == ["500 B (50%)", None, "500 B (50%)"]
    assert quorum_rows(taken) == [
        (1, "leader", 9, 0, "now"),
        (2, "voter", None, None, "not heard"),
        (3, "voter", 9, 0, "100 ms ago"),
    ]


def test_rates_come_from_two_looks_and_not_over_a_restart() -> None:
    def counted(total: int, at_s: float) -> ClusterLook:
        text = (
            b"# TYPE kafka_server_brokertopicmetrics_bytesin_total counter\n"
            b"kafka_server_brokertopicmetrics_bytesin_total %d.0\n"
            b'kafka_server_brokertopicmetrics_bytesin_total{topic="t"} 77.0\n'
            b"kafka_server_brokertopicmetrics_messagesin_total 1e3\n" % total
        )
        return look(looks=(NodeLook(node_id=1, traffic=parse_traffic(text, at_s)),))

    rates = rates_between(counted(1_000, 10.0), counted(5_000, 12.0))
    assert (rates[1].bytes_in, rates[1].messages_in, rates[1].bytes_out) == (2_000.0, 0.0, 0.0)
    assert rates_between(None, counted(1, 1.0)) == {}
    assert rates_between(counted(5_000, 10.0), counted(10, 12.0)) == {}
    assert node_rows(counted(1, 1.0), rates)[0][7] == "2.0 KiB/s"


def test_status_for_programs_has_findings_and_rates() -> None:
    taken = look(node(1), node(2, state="fenced"), node(3))
    told = status_json(taken, cluster_findings(taken), {}, [{"id": "1.0"}])
    assert (told["is_ok"], told["findings"][0]["kind"], told["events"]) == (False, "fenced-broker", [{"id": "1.0"}])
