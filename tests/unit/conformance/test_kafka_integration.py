"""What the runner of Apache Kafka's client integration tests reads, and what its hook starts a node with."""

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from conformance.kafka_integration.configured_node import ConfiguredNode
from conformance.kafka_integration.hook import FreshClusters, with_free_ports
from conformance.kafka_integration.java_tests import class_of, method_of, read_reports
from conformance.suite import Status

from penstock.local.errors import ClusterError

REPORT = """<testsuite>
  <testcase classname="org.apache.kafka.clients.ATest" name="a()[2]" time="1.5"/>
  <testcase classname="org.apache.kafka.clients.ATest" name="a()[1]" time="0">
    <skipped><![CDATA[the same test runs as KRAFT]]></skipped>
  </testcase>
  <testcase classname="org.apache.kafka.clients.ATest" name="a()[10]" time="2">
    <failure message="expected 1"><![CDATA[expected 1, found 2
at a line]]></failure>
  </testcase>
</testsuite>"""


def test_invocations_are_counted_without_those_that_run_twice(tmp_path: Path) -> None:
    (tmp_path / "TEST-junit-jupiter.xml").write_text(REPORT)
    first, second = read_reports(tmp_path)
    assert (first.test, first.status, first.seconds) == ("clients.ATest.a()[1]", Status.PASSED, 1.5)
    assert (second.test, second.status) == ("clients.ATest.a()[2]", Status.FAILED)
    assert second.detail.startswith("expected 1, found 2")


def test_a_name_tells_class_and_method() -> None:
    assert class_of("clients.ATest.a(ClusterInstance)[1]") == "clients.ATest"
    assert method_of("clients.ATest.a(ClusterInstance)[1]") == "a"


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ({"offsets.topic.replication.factor": "3"}, {"offsets.topic.replication.factor": "1"}),
        ({"num.partitions": "4"}, {"num.partitions": "4", "offsets.topic.replication.factor": "1"}),
        ({"default.replication.factor": "2"}, {"default.replication.factor": "1"}),
        ({"Maximum bytes of a fetch": "4", "log.unclean.leader.election.enable": "true"}, {}),
    ],
)
def test_a_node_gets_what_the_test_asks_for_with_replicas_cut_to_the_cluster(
    tmp_path: Path, asked: dict[str, str], given: dict[str, str]
) -> None:
    clusters = FreshClusters(tmp_path)
    node = clusters.new_node(0, 20_000, tmp_path / "node-0")
    request = {"disks": 2, "protocol": "PLAINTEXT", "properties": asked, "broker_properties": {}}
    settings = clusters.settings(node, request)
    assert given.items() <= settings.items()
    assert settings["log.dirs"] == f"{tmp_path}/node-0,{tmp_path}/node-0-disk-2"
    assert not asked.keys() & {"log.unclean.leader.election.enable"} & settings.keys()


def test_what_is_asked_for_a_broker_wins_over_its_controller_and_over_all(tmp_path: Path) -> None:
    clusters = FreshClusters(tmp_path)
    node = clusters.new_node(0, 20_000, tmp_path / "node-0")
    request = {
        "disks": 1,
        "protocol": "PLAINTEXT",
        "properties": {"num.partitions": "1", "broker.rack": "all"},
        "broker_properties": {"0": {"num.partitions": "3"}, "3000": {"num.partitions": "2", "broker.rack": "here"}},
    }
    settings = clusters.settings(node, request)
    assert (settings["num.partitions"], settings["broker.rack"]) == ("3", "here")


def test_a_test_without_invocations_is_its_first_one(tmp_path: Path) -> None:
    case = '<testcase classname="kafka.api.ATest" name="a()" time="3"/>'
    (tmp_path / "TEST-junit-jupiter.xml").write_text(f"<testsuite>{case}</testsuite>")
    (result,) = read_reports(tmp_path)
    assert result.test == "kafka.api.ATest.a()[1]"
    assert class_of(result.test) == "kafka.api.ATest"


def configured(tmp_path: Path, protocol: str) -> ConfiguredNode:
    node = FreshClusters(tmp_path).new_node(0, 20_000, tmp_path / "node-0")
    request = {
        "listeners": {"CLIENT": protocol},
        "principals": {"CLIENT": "User:client"},
        "scram": ["SCRAM-SHA-256=[name=admin,password=secret]"],
    }
    told = {"disks": 1, "properties": {"num.partitions": "2", "file.delete.delay.ms": "1000"}}
    return ConfiguredNode(request, told, node, random.Random(1))


def test_a_node_has_the_listeners_of_the_test_and_one_of_the_harness(tmp_path: Path) -> None:
    one = configured(tmp_path, "PLAINTEXT")
    settings = one.settings()
    assert settings["listeners"] == f"HARNESS://127.0.0.1:20000,CLIENT://127.0.0.1:{one.ports['CLIENT']}"
    assert settings["num.partitions"] == "2"
    assert "file.delete.delay.ms" not in settings
    assert settings["cluster.scram.credentials"] == "SCRAM-SHA-256=[name=admin,password=secret]"
    assert json.loads(one.principals()) == {"CLIENT": "User:client", "HARNESS": "User:harness"}
    assert one.client() == {"bootstrap.servers": "127.0.0.1:20000"}


def test_where_clients_prove_who_they_are_the_harness_does_so_too(tmp_path: Path) -> None:
    one = configured(tmp_path, "SASL_SSL")
    settings = one.settings()
    protocols = "HARNESS:PLAINTEXT,CONTROLLER:PLAINTEXT,CLIENT:SASL_SSL,HARNESS_SASL:SASL_PLAINTEXT"
    assert settings["listener.security.protocol.map"] == protocols
    assert 'user_harness="' in settings["listener.name.harness_sasl.plain.sasl.jaas.config"]
    assert one.client()["bootstrap.servers"] == settings["listeners"].rpartition("//")[2]


def test_its_metrics_are_read_where_it_is_administered(tmp_path: Path) -> None:
    one = configured(tmp_path, "PLAINTEXT")
    assert one.metrics() == f"{one.settings()['admin.listeners']}/metrics"


def test_the_controller_beside_brokers_has_what_the_test_asks_for_and_no_listener_of_theirs(tmp_path: Path) -> None:
    settings = configured(tmp_path, "SASL_SSL").controller_settings("CONTROLLER://127.0.0.1:20001")
    assert settings["listeners"] == "CONTROLLER://127.0.0.1:20001"
    assert settings["num.partitions"] == "2"
    assert settings["cluster.scram.credentials"] == "SCRAM-SHA-256=[name=admin,password=secret]"


@pytest.mark.parametrize(("failures", "starts"), [(0, 1), (1, 2), (2, 3)])
def test_a_port_that_another_program_took_is_not_the_end(failures: int, starts: int) -> None:
    errors = [ClusterError("node 1 ended: Address already in use.")] * failures
    started: list[Mapping[str, object]] = []

    def start(request: Mapping[str, object]) -> Mapping[str, object]:
        started.append(request)
        if errors:
            raise errors.pop()
        return {"ports": []}

    assert with_free_ports(start, {"brokers": 3}) == {"ports": []}
    assert started == [{"brokers": 3}] * starts


def test_any_other_failure_is() -> None:
    def start(_: Mapping[str, object]) -> Mapping[str, object]:
        raise ClusterError("node 1 ended: no space left.")

    with pytest.raises(ClusterError, match="no space left"):
        with_free_ports(start, {})
