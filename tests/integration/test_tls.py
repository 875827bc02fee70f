"""Three node processes whose listeners all speak TLS and require certificates, and the clients of others."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from certificates import Authority
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from waiting import wait_for

from penstock.local.local_node import LocalNode, environment_without_properties
from penstock.local.ports import find_free

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

DEADLINE_S = 60.0
IDS = (1, 2, 3)


class TlsCluster:
    """Nodes 1 to 3, each with a certificate that names it, and no secret. Node 4 may be added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log_sizes: dict[int, int] = {}
        self.authority = Authority()
        self.trusted = folder / "authority.pem"
        self.trusted.write_text(self.authority.certificate)
        generator = random.Random()
        self.controller_ports = {node_id: find_free(generator) for node_id in IDS}
        self.nodes = {
            node_id: LocalNode(
                id=node_id,
                port=find_free(generator),
                data=folder / f"node-{node_id}",
                environment=environment_without_properties({}),
            )
            for node_id in (*IDS, 4)
        }

    def certificate(self, node_id: int) -> Path:
        return self.folder / f"node-{node_id}.pem"

    def start(self, node_id: int, certificate: str | None = None, **changed: str) -> None:
        own = self.authority.issue_for_node(node_id) if certificate is None else certificate
        self.certificate(node_id).write_text(own)
        node = self.nodes[node_id]
        controller = f",CONTROLLER://127.0.0.1:{self.controller_ports[node_id]}" if node_id in IDS else ""
        node.write_properties(
            {
                "process.roles": "broker,controller" if node_id in IDS else "broker",
                "listeners": f"SSL://127.0.0.1:{node.port}{controller}",
                "listener.security.protocol.map": "SSL:SSL,CONTROLLER:SSL",
                "inter.broker.listener.name": "SSL",
                "controller.quorum.voters": ",".join(f"{i}@127.0.0.1:{self.controller_ports[i]}" for i in IDS),
                "cluster.id": "cVg0FJXuTjOXMxXGnN9MPA",
                "cluster.certificate.name": "node-{id}",
                "ssl.client.auth": "required",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.certificate(node_id)),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.trusted),
                **{key.replace("_", "."): value for key, value in changed.items()},
            }
        )
        node.start()

    def client(self, own: str | None = None, *, node_id: int = 1) -> dict[str, str | int | float | bool]:
        """What librdkafka is configured with; the certificate is a user's unless another is given."""
        file = self.folder / f"client-{len(list(self.folder.iterdir()))}.pem"
        file.write_text(self.authority.issue(common_name="a user") if own is None else own)
        shown = {"ssl.certificate.location": str(file), "ssl.key.location": str(file)} if own != "" else {}
        return {
            "bootstrap.servers": f"127.0.0.1:{self.nodes[node_id].port}",
            "security.protocol": "ssl",
            "ssl.ca.location": str(self.trusted),
            **shown,
        }

    def stop(self) -> None:
        for node in self.nodes.values():
            if node.is_running:
                node.kill()

    def note_logs(self) -> None:
        self.log_sizes = {node_id: node.log.stat().st_size for node_id, node in self.nodes.items() if node.log.exists()}

    def log(self, node_id: int) -> str:
        """What was written since `note_logs`."""
        return self.nodes[node_id].log.read_bytes()[self.log_sizes.get(node_id, 0) :].decode()

    def brokers(self) -> set[int]:
        try:
            return set(AdminClient(self.client()).list_topics(timeout=2).brokers)
        except KafkaException:
            return set()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsCluster]:
    started = TlsCluster(tmp_path_factory.mktemp("cluster"))
    try:
        for node_id in IDS:
            started.start(node_id)
        yield started
    finally:
        started.stop()


@pytest.fixture
def cluster(shared: TlsCluster) -> Iterator[TlsCluster]:
    """Nodes 1 to 3 run, before and after."""
    wait_for(lambda: shared.brokers() == set(IDS), "cluster")
    shared.note_logs()
    yield shared
    if shared.nodes[4].is_running:
        shared.nodes[4].kill()


def read(url: str) -> bytes:
    """What HTTP answers; nothing before it is there."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bytes(answer.read())
    except OSError:
        return b""


def test_nodes_prove_themselves_with_certificates_and_clients_are_served(cluster: TlsCluster) -> None:
    http = f"http://127.0.0.1:{find_free(random.Random())}"
    cluster.start(4, admin_listeners=http)
    wait_for(lambda: cluster.brokers() == {*IDS, 4}, "fourth node")
    wait_for(lambda: b'penstock_certificate_not_after_seconds{listener="SSL"}' in read(f"{http}/metrics"), "the metric")
    admin = AdminClient(cluster.client())
    admin.create_topics([NewTopic("flights", 4, 3)])["flights"].result(DEADLINE_S)
    producer = Producer(cluster.client(node_id=4) | {"acks": "all"})
    values = [bytes([number]) * 100_000 for number in range(200)]
    for number, value in enumerate(values):
        producer.produce("flights", value, partition=number % 4)
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0
    consumer = Consumer(cluster.client() | {"group.id": "unused", "enable.auto.commit": "false"})
    consumer.assign([TopicPartition("flights", index, 0) for index in range(4)])
    found: list[bytes] = []

    def has_all() -> bool:
        found.extend(message.value() or b"" for message in consumer.consume(100, 0.5) if message.error() is None)
        return len(found) >= len(values)

    wait_for(has_all, lambda: f"{len(values)} records; {len(found)} came")
    consumer.close()
    assert sorted(found) == sorted(values)


def test_the_command_line_speaks_tls(cluster: TlsCluster) -> None:
    options = [f"-X{key}={value}" for key, value in cluster.client().items() if key != "bootstrap.servers"]
    command = [sys.executable, "-P", "-m", "penstock", "quorum", "status", "--json"]
    asked = [*command, "--bootstrap", f"127.0.0.1:{cluster.nodes[1].port}"]
    answered = subprocess.run([*asked, *options], check=True, capture_output=True, timeout=DEADLINE_S)
    assert json.loads(answered.stdout)["leader_id"] in IDS
    refused = subprocess.run([*asked, options[0]], capture_output=True, text=True, timeout=DEADLINE_S)
    assert refused.returncode == 1
    assert "certificate verify failed" in refused.stderr
    for command in (["topic", "list"], ["quorum", "status"]):
        plain = [sys.executable, "-P", "-m", "penstock", *command, "--bootstrap", asked[-1]]
        hinted = subprocess.run(plain, capture_output=True, text=True, timeout=DEADLINE_S)
        assert hinted.returncode == 1
        assert f"{asked[-1]} speaks TLS; add -X security.protocol=ssl" in hinted.stderr


def test_no_connection_is_let_in_without_a_certificate_that_is_valid_now(cluster: TlsCluster) -> None:
    strangers = {
        "none": "",
        "expired": cluster.authority.issue(common_name="a user", is_expired=True),
        "foreign": Authority().issue(common_name="a user"),
    }
    for own in strangers.values():
        admin = AdminClient(cluster.client(own))
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=3)
    plain = AdminClient({"bootstrap.servers": f"127.0.0.1:{cluster.nodes[1].port}"})
    with pytest.raises(KafkaException):
        plain.list_topics(timeout=2)

    def is_told() -> bool:
        # Of one peer a node tells little in a while, and other tests were strangers from here, too.
        with suppress(KafkaException):
            AdminClient(cluster.client("")).list_topics(timeout=1)
        return "reason=its handshake of TLS failed: peer did not return a certificate" in cluster.log(1)

    wait_for(is_told, "the node tells why")
    # However often their clients try.
    assert sum("Connection closed" in line for line in cluster.log(1).splitlines()) < 10
    wait_for(lambda: cluster.brokers() == set(IDS), "cluster")


@pytest.mark.parametrize("kind", ["another node's", "no node's", "foreign", "expired"])
def test_a_node_whose_certificate_does_not_name_it_is_kept_out(cluster: TlsCluster, kind: str) -> None:
    certificates = {
        "another node's": cluster.authority.issue_for_node(2),
        "no node's": cluster.authority.issue("localhost", "127.0.0.1"),
        "foreign": Authority().issue_for_node(4),
        "expired": cluster.authority.issue_for_node(4, is_expired=True),
    }
    said = {
        "another node's": "it says that it is node 4, but its certificate does not have the name node-4",
        "no node's": "it says that it is node 4, but its certificate does not have the name node-4",
        "foreign": "ALERT_UNKNOWN_CA",
        "expired": "ALERT_CERTIFICATE_EXPIRED",
    }
    cluster.start(4, certificates[kind])
    wait_for(lambda: said[kind] in cluster.log(4), f"sentence in the log of node 4: {said[kind]}")
    assert cluster.brokers() == set(IDS), "\n".join(map(cluster.log, IDS))


def test_a_voter_that_lost_its_certificate_is_no_voter_until_it_has_one(cluster: TlsCluster) -> None:
    cluster.nodes[3].kill()
    cluster.start(3, Authority().issue_for_node(3))
    wait_for(lambda: "closed by it: [SSL: TLSV1_ALERT_UNKNOWN_CA]" in cluster.log(3), "sentence about the authority")
    cluster.certificate(3).write_text(cluster.authority.issue_for_node(2))
    refused = "it says that it is node 3, but its certificate does not have the name node-3"
    wait_for(lambda: any(refused in cluster.log(node_id) for node_id in (1, 2)), "refusal")
    # It answers on its port, so that only the end of its session tells that the broker it was is gone.
    wait_for(lambda: cluster.brokers() == {1, 2}, "end of the session of the third node")
    # The file is looked at again while the node runs.
    cluster.certificate(3).write_text(cluster.authority.issue_for_node(3))
    wait_for(lambda: "Reloaded certificates" in cluster.log(3), "reload")
    wait_for(lambda: cluster.brokers() == set(IDS), "third node")


def test_a_dynamic_config_names_another_file(cluster: TlsCluster) -> None:
    other = cluster.folder / "other.pem"
    other.write_text(cluster.authority.issue("node-1", "localhost", "127.0.0.1", "renewed"))
    admin = AdminClient(cluster.client())

    def alter(path: str) -> None:
        entry = ConfigEntry(
            "listener.name.ssl.ssl.keystore.location", path, incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)

    with pytest.raises(KafkaException, match=r"keystore\.location is /nowhere, which cannot be read: No such file"):
        alter("/nowhere")
    alter(str(other))
    context = cluster.authority.client_context(cluster.folder, cluster.authority.issue(common_name="a user"))

    def names() -> set[str]:
        with (
            socket.create_connection(("127.0.0.1", cluster.nodes[1].port), timeout=DEADLINE_S) as connected,
            context.wrap_socket(connected, server_hostname="localhost") as inside,
        ):
            certificate = inside.getpeercert()
            assert certificate is not None
            return {str(name[1]) for name in certificate["subjectAltName"]}

    wait_for(lambda: "renewed" in names(), "other certificate")
    alter(str(cluster.certificate(1)))
    wait_for(lambda: "renewed" not in names(), "certificate as before")
