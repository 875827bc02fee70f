"""Three node processes that speak SASL on every listener, and the clients of others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError as AioKafkaError
from certificates import Authority
from click.testing import CliRunner, Result
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka import KafkaProducer
from tokens import jwk, key_set, rsa_key, token
from waiting import wait_for

from penstock import cli
from penstock.client.clock import now_ms
from penstock.local.cluster import LocalCluster
from penstock.local.local_node import LocalNode
from penstock.local.ports import find_free

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

DEADLINE_S = 30.0
PASSWORD = 'alice "knows" it'
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="nodes" password="nodes-know-it" user_alice="alice \\"knows\\" it" user_bob=\'bob-1\';'
)


class SaslCluster:
    """Each node has a listener of the harness (PLAINTEXT), one of clients and nodes (SASL), one of clients (TLS),
    and the controllers'. Nodes have a login, as Apache Kafka's have, and no secret."""

    def __init__(
        self, cluster: LocalCluster, ports: dict[int, int], tls_ports: dict[int, int], authority: Path
    ) -> None:
        self.cluster = cluster
        self.tls_bootstrap = ",".join(f"127.0.0.1:{port}" for port in tls_ports.values())
        self.authority = authority
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports.values())

    def librdkafka(self, mechanism: str, user: str, password: str) -> dict[str, str | int | float | bool]:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }

    def python(self, mechanism: str, user: str, password: str) -> dict[str, object]:
        """For kafka-python and aiokafka."""
        return {
            "bootstrap_servers": self.bootstrap.split(","),
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }

    def logs(self) -> str:
        return "".join(node.log.read_text() for node in self.cluster.nodes.values())


@pytest.fixture(scope="module")
def sasl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslCluster]:
    generator = random.Random()
    ports = {node_id: find_free(generator) for node_id in (1, 2, 3)}
    tls_ports = {node_id: find_free(generator) for node_id in ports}
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority()
    (folder / "authority.pem").write_text(authority.certificate)
    (folder / "node.pem").write_text(authority.issue_for_node(1))

    def listeners(node: LocalNode) -> dict[str, str]:
        own = f"SASL://127.0.0.1:{ports[node.id]},TLS://127.0.0.1:{tls_ports[node.id]}"
        return {"listeners": f"PLAINTEXT://127.0.0.1:{node.port},{own}"}

    def with_controllers(node: LocalNode, told: dict[str, str]) -> dict[str, str]:
        controller = next(one for one in told["listeners"].split(",") if one.startswith("CONTROLLER:"))
        wired = {**told, "listeners": f"{listeners(node)['listeners']},{controller}"}
        del wired["cluster.secret"]
        return wired

    keys = tmp_path_factory.mktemp("issuer") / "keys.json"
    keys.write_bytes(key_set(jwk(rsa_key(), "one")))
    cluster = LocalCluster(
        tmp_path_factory.mktemp("cluster"),
        node_count=3,
        properties={
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,"
            "TLS:SASL_SSL,CONTROLLER:SASL_SSL",
            "inter.broker.listener.name": "SASL",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
            "sasl.oauthbearer.expected.audience": "kafka",
            "cluster.scram.credentials": "SCRAM-SHA-256=[name=carol,password=first-1]",
            "listener.name.sasl.plain.sasl.jaas.config": JAAS,
            "listener.name.tls.plain.sasl.jaas.config": JAAS,
            "listener.name.controller.plain.sasl.jaas.config": JAAS,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "node.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "authority.pem"),
        },
        rewire=lambda node, told: with_controllers(node, dict(told)),
    )
    with cluster:
        yield SaslCluster(cluster, ports, tls_ports, folder / "authority.pem")


def test_clients_authenticate_by_plain_and_nodes_replicate(sasl: SaslCluster) -> None:
    alice = sasl.librdkafka("PLAIN", "alice", PASSWORD)
    admin = AdminClient(alice)
    admin.create_topics([NewTopic("flights", 3, 3)])["flights"].result(DEADLINE_S)
    producer = Producer(alice | {"acks": "all"})
    producer.produce("flights", b"librdkafka")
    assert producer.flush(DEADLINE_S) == 0
    bob = sasl.python("PLAIN", "bob", "bob-1")
    with KafkaProducer(**bob, acks="all") as other:
        other.send("flights", b"kafka-python").get(DEADLINE_S)

    async def read() -> set[bytes]:
        async with AIOKafkaConsumer("flights", **bob, auto_offset_reset="earliest") as consumer:
            return {(await consumer.getone()).value for _ in range(2)}

    assert asyncio.run(asyncio.wait_for(read(), DEADLINE_S)) == {b"librdkafka", b"kafka-python"}


def test_clients_authenticate_inside_tls(sasl: SaslCluster) -> None:
    told = {
        **sasl.librdkafka("PLAIN", "alice", PASSWORD),
        "bootstrap.servers": sasl.tls_bootstrap,
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": str(sasl.authority),
    }
    producer = Producer(told)
    producer.produce("ships", b"librdkafka")
    assert producer.flush(DEADLINE_S) == 0


def test_clients_authenticate_by_scram_with_what_clients_have_set(sasl: SaslCluster) -> None:
    admin = AdminClient(sasl.librdkafka("SCRAM-SHA-256", "carol", "first-1"))
    admin.create_topics([NewTopic("trains", 1, 3)])["trains"].result(DEADLINE_S)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    change = UserScramCredentialUpsertion("dave", info, b"s-2")
    admin.alter_user_scram_credentials([change])["dave"].result(DEADLINE_S)
    futures = admin.describe_user_scram_credentials(["dave"])
    assert isinstance(futures, dict)
    described = futures["dave"].result(DEADLINE_S)
    assert [one.iterations for one in described.scram_credential_infos] == [8192]

    def is_served() -> bool:
        # Other nodes than the one that was asked learn of it with the metadata.
        producer = Producer(sasl.librdkafka("SCRAM-SHA-512", "dave", "s-2") | {"log_level": 0})
        producer.produce("trains", b"librdkafka")
        return producer.flush(5.0) == 0

    wait_for(is_served, "the new user on all nodes")
    dave = sasl.python("SCRAM-SHA-512", "dave", "s-2")
    with KafkaProducer(**dave, acks="all") as producer:
        producer.send("trains", b"kafka-python").get(DEADLINE_S)

    async def send() -> None:
        async with AIOKafkaProducer(**sasl.python("SCRAM-SHA-256", "carol", "first-1")) as producer:
            await producer.send_and_wait("trains", b"aiokafka")

    asyncio.run(asyncio.wait_for(send(), DEADLINE_S))
    assert "first-1" not in sasl.logs()


def test_commands_authenticate_by_a_file_of_properties(sasl: SaslCluster, tmp_path: Path) -> None:
    def run(password: str, *arguments: str) -> Result:
        """With librdkafka and with a connection of our own."""
        escaped = password.replace('"', '\\\\"')
        path = tmp_path / "client.properties"
        path.write_text(
            f"bootstrap.servers={sasl.bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n"
            f'  username="alice" password="{escaped}";\n'
        )
        return CliRunner().invoke(cli.main, [*arguments, "--command-config", str(path)], prog_name="penstock")

    for arguments in (("topic", "create", "commands"), ("transactions", "list"), ("quorum", "status")):
        allowed, refused = run(PASSWORD, *arguments), run("guess-78", *arguments, "--timeout", "2")
        assert allowed.exit_code == 0, allowed.output
        assert refused.exit_code == 1
        assert "Authentication failed: Invalid username or password" in refused.output
    assert "guess-78" not in sasl.logs()


def test_clients_authenticate_by_tokens_and_renew_their_sessions(sasl: SaslCluster) -> None:
    lifetime_s = 2

    def erin() -> str:
        now_s = int(now_ms() / 1000)
        return token(rsa_key(), sub="erin", iat=now_s, exp=now_s + lifetime_s)

    told: list[float] = []

    def librdkafka(_config: str) -> tuple[str, float]:
        told.append(now_ms() / 1000 + lifetime_s)
        return erin(), told[-1]

    settings = {
        "bootstrap.servers": sasl.bootstrap,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": librdkafka,
    }
    producer = Producer(settings | {"acks": "all"})

    def send() -> bool:
        producer.produce("tokens", b"librdkafka")
        assert producer.flush(DEADLINE_S) == 0
        return len(told) >= 3

    # Its sessions are renewed while it sends; a session that ends takes nothing with it.
    wait_for(send, "renewed sessions")

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return erin()

    async def read() -> bytes | None:
        consumer = AIOKafkaConsumer(
            "tokens",
            bootstrap_servers=sasl.bootstrap.split(","),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provider(),
            auto_offset_reset="earliest",
        )
        async with consumer:
            value: bytes | None = (await consumer.getone()).value
            return value

    assert asyncio.run(asyncio.wait_for(read(), DEADLINE_S)) == b"librdkafka"


def test_a_wrong_password_is_told_to_every_client_and_not_to_the_log(sasl: SaslCluster) -> None:
    errors: list[KafkaError] = []
    producer = Producer(sasl.librdkafka("PLAIN", "alice", "guess-77") | {"error_cb": errors.append})
    wait_for(lambda: producer.poll(0.1) is not None and bool(errors), "the error of librdkafka")
    assert "Invalid username or password" in errors[0].str()

    async def connect() -> None:
        producer = AIOKafkaProducer(**sasl.python("PLAIN", "bob", "guess-77"))
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(AioKafkaError):
        asyncio.run(asyncio.wait_for(connect(), DEADLINE_S))
    wait_for(lambda: "reason=Authentication failed: Invalid username or password" in sasl.logs(), "the log")
    assert "guess-77" not in sasl.logs()
    assert "knows" not in sasl.logs()
    assert "know-it" not in sasl.logs()
