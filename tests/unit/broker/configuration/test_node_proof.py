"""With what nodes prove to each other that they are of one cluster."""

import pytest

from penstock.broker.configuration.node_config import load
from penstock.protocol.errors import ConfigError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
NODES = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093,2@127.0.0.1:9193",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
}


def jaas(user: str = "nodes", password: str = "hunter2", module: str = PLAIN) -> str:
    return f'{module} required username="{user}" password="{password}" user_{user}="{password}";'


def secret_of(**changed: str) -> bytes:
    return load({**NODES, "sasl.jaas.config": jaas()} | changed).cluster_secret


def test_nodes_of_one_login_have_one_secret() -> None:
    broker = {
        "node.id": "3",
        "process.roles": "broker",
        "listeners": "SASL_PLAINTEXT://127.0.0.1:9292",
    }
    controller = {"node.id": "2", "process.roles": "controller", "listeners": "CONTROLLER://127.0.0.1:9193"}
    assert len(secret_of()) == 64
    assert secret_of() == secret_of(**broker) == secret_of(**controller)


def test_brokers_and_controllers_that_log_in_by_two_mechanisms_have_one_secret() -> None:
    """As Apache Kafka's own system tests write it: each role has what it needs, and no more."""
    controllers = {
        "controller.listener.names": "CONTROLLER_SASL_PLAINTEXT",
        "controller.quorum.voters": "3001@127.0.0.1:9093",
        "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT,CONTROLLER_SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller_sasl_plaintext.plain.sasl.jaas.config": jaas("kafka", "kafka-secret"),
    }
    controller = {
        "node.id": "3001",
        "process.roles": "controller",
        "listeners": "CONTROLLER_SASL_PLAINTEXT://127.0.0.1:9093",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    broker = {
        "node.id": "1",
        "process.roles": "broker",
        "listeners": "INTERNAL://127.0.0.1:9092",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "listener.name.internal.scram-sha-256.sasl.jaas.config": jaas("brokers", "among them", SCRAM),
    }
    assert load({**controllers, **controller}).cluster_secret == load({**controllers, **broker}).cluster_secret != b""


@pytest.mark.parametrize("login", [jaas(password="hunter3"), jaas(user="others")])
def test_another_user_or_password_is_another_secret(login: str) -> None:
    assert secret_of(**{"sasl.jaas.config": login}) != secret_of()


def test_the_login_of_controllers_comes_first() -> None:
    of_controllers = {"listener.name.controller.plain.sasl.jaas.config": jaas(password="theirs")}
    assert secret_of(**of_controllers) == secret_of(**{"sasl.jaas.config": jaas(password="theirs")})


def test_a_listener_of_controllers_without_sasl_leaves_that_of_brokers() -> None:
    plain = {"listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"}
    assert secret_of(**plain) == secret_of()


def test_a_scram_user_will_do() -> None:
    mechanism = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.mechanism.controller.protocol": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.jaas.config": jaas(module=SCRAM),
    }
    assert len(secret_of(**mechanism)) == 64


def test_a_secret_that_is_given_is_the_secret() -> None:
    assert secret_of(**{"cluster.secret": "of the cluster"}) == b"of the cluster"


def test_what_is_used_of_others_listeners_is_no_unknown_key() -> None:
    broker = {
        "node.id": "3",
        "process.roles": "broker",
        "listeners": "SASL_PLAINTEXT://127.0.0.1:9292",
        "listener.name.controller.plain.sasl.jaas.config": jaas(),
    }
    assert load({**NODES, "sasl.jaas.config": jaas()} | broker).warnings == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"sasl.jaas.config": f'{PLAIN} required user_alice="hunter2";'},
        {"sasl.jaas.config": f'{PLAIN} required username="nodes" user_nodes="hunter2";'},
        {"sasl.mechanism.controller.protocol": "PENSTOCK-CLUSTER", "sasl.mechanism.inter.broker.protocol": ""},
    ],
)
def test_without_a_login_nodes_have_no_proof(changed: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="cluster\\.secret or cluster\\.certificate\\.name must be set") as refused:
        secret_of(**changed)
    assert "hunter2" not in str(refused.value)
