"""`penstock user`, `acl`, `quota` and `token` on a node with SASL, certificates and an authorizer."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from certificates import Authority
from click.testing import CliRunner, Result

from penstock import cli
from penstock.client.clock import now_ms
from penstock.client.sasl_login import unsecured_token
from penstock.local.cluster import LocalCluster
from penstock.local.local_node import LocalNode
from penstock.local.ports import find_free

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Terminal:
    """Runs commands as one of the cluster's users."""

    def __init__(self, address: str, folder: Path) -> None:
        self._address = address
        self._folder = folder

    def log_in(self, name: str, *, mechanism: str, jaas: str) -> None:
        (self._folder / name).write_text(
            f"bootstrap.servers={self._address}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f"sasl.jaas.config={jaas};\n"
        )

    def run(
        self,
        name: str,
        *words: str,
        stdin: str = "",
        status: int = 0,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Result:
        environment = {"KAFKA_COMMAND_CONFIG": str(self._folder / name), **environment}
        answer = CliRunner(env=environment).invoke(cli.main, words, input=stdin, prog_name="penstock")
        assert answer.exit_code == status, answer.output
        return answer

    def json(self, name: str, *words: str, stdin: str = "") -> Any:
        return json.loads(self.run(name, *words, "--json", stdin=stdin).stdout)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("security")
    generator = random.Random()
    port, tls_port = find_free(generator), find_free(generator)
    authority = Authority()
    (folder / "authority.pem").write_text(authority.certificate)
    (folder / "node.pem").write_text(authority.issue_for_node(1))
    (folder / "grace.pem").write_text(authority.issue("client", common_name="Grace"))

    def listeners(node: LocalNode) -> dict[str, str]:
        return {"listeners": f"PLAINTEXT://{node.address},SASL://127.0.0.1:{port},TLS://127.0.0.1:{tls_port}"}

    properties = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "authority.pem"),
        "ssl.client.auth": "required",
        "listener.name.tls.ssl.principal.mapping.rules": "RULE:^CN=([^,]+),.*$/$1/L",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl.oauthbearer.sasl.jaas.config": f"{BEARER} required;",
        "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
        "listener.name.sasl.plain.sasl.jaas.config": f'{PLAIN} required user_admin="admin-1";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The harness asks on the other listener whether the node is ready.
        "super.users": "User:admin;User:ANONYMOUS",
        "delegation.token.secret.key": "a key of tokens",
    }
    with LocalCluster(folder / "cluster", properties=properties, properties_of=listeners):
        terminal = Terminal(f"127.0.0.1:{port}", folder)
        terminal.log_in("admin", mechanism="PLAIN", jaas=f'{PLAIN} required username="admin" password="admin-1"')
        terminal.run("admin", "topic", "create", "orders")
        terminal.run("admin", "user", "add", "ada", stdin="analytical engine\n")
        jaas = f'{SCRAM} required username="ada" password="analytical engine"'
        store = "ssl.{0}store.type=PEM\nssl.{0}store.location={1}\n"
        (folder / "grace").write_text(
            f"bootstrap.servers=127.0.0.1:{tls_port}\nsecurity.protocol=SSL\n"
            + store.format("trust", folder / "authority.pem")
            + store.format("key", folder / "grace.pem")
        )
        terminal.log_in("ada", mechanism="SCRAM-SHA-512", jaas=jaas)
        yield terminal


def test_a_user_may_do_what_acls_allow_and_no_longer(terminal: Terminal) -> None:
    produce = ("produce", "orders", "--timeout", "5")
    terminal.run("ada", *produce, stdin="one\n", status=1)
    words = ("--allow-principal", "User:ada", "--producer", "--consumer", "--topic", "orders", "--group", "reports")
    added = terminal.json("admin", "acl", "add", *words)["added"]
    assert len(added) == 5
    terminal.run("ada", *produce, stdin="two\n")
    read = terminal.run("ada", "consume", "orders", "--group", "reports", "--max-messages", "1")
    assert read.stdout == "two\n"
    assert "CLUSTER_AUTHORIZATION_FAILED" in terminal.run("ada", "acl", "list", status=1).stderr
    listed = terminal.json("admin", "acl", "list", "--principal", "User:ada")["acls"]
    assert sorted(map(str, listed)) == sorted(map(str, added))
    assert len(terminal.json("admin", "acl", "remove", *words)["removed"]) == 5
    terminal.run("ada", *produce, stdin="three\n", status=1)
    assert terminal.json("admin", "acl", "list") == {"acls": []}


def test_topics_are_completed_for_those_who_may_see_them(terminal: Terminal) -> None:
    words = {"_PENSTOCK_COMPLETE": "bash_complete", "COMP_WORDS": "penstock acl list --topic or", "COMP_CWORD": "4"}
    assert terminal.run("admin", environment=words).stdout == "plain,orders\n"
    assert terminal.run("eve", environment=words).stdout.strip() == ""


def test_a_user_without_a_password_is_out(terminal: Terminal) -> None:
    terminal.run("admin", "user", "add", "eve", "-m", "SCRAM-SHA-256", stdin="difference engine\n")
    jaas = f'{SCRAM} required username="eve" password="difference engine"'
    terminal.log_in("eve", mechanism="SCRAM-SHA-256", jaas=jaas)
    terminal.run("eve", "transactions", "list")
    assert terminal.json("admin", "user", "list", "eve")["credentials"] == [
        {"user": "eve", "mechanism": "SCRAM-SHA-256", "iterations": 4096}
    ]
    terminal.run("admin", "user", "delete", "eve", "--yes")
    refused = terminal.run("eve", "transactions", "list", status=1)
    assert "(SASL_AUTHENTICATION_FAILED)" in refused.stderr


def test_a_certificate_is_a_principal_by_the_rules_of_its_listener(terminal: Terminal) -> None:
    """KIP-371: CN=Grace,OU=…,O=… is User:grace."""
    assert "(CLUSTER_AUTHORIZATION_FAILED)" in terminal.run("grace", "acl", "list", status=1).stderr
    words = ("--allow-principal", "User:grace", "--cluster", "--operation", "Describe")
    added = terminal.json("admin", "acl", "add", *words)["added"]
    assert terminal.json("grace", "acl", "list")["acls"] == added
    assert terminal.json("admin", "acl", "remove", *words)["removed"] == added


def test_a_token_of_an_issuer_is_read_from_its_file(terminal: Terminal, tmp_path: Path) -> None:
    """RFC 7628, with librdkafka and with a connection of our own; this node takes unsigned tokens."""
    told = f'{BEARER} required unsecuredLoginStringClaim_sub="admin"'
    terminal.log_in("by-name", mechanism="OAUTHBEARER", jaas=told)
    (tmp_path / "token").write_text(unsecured_token("admin", now_s=now_ms() // 1000) + "\n")
    of_file = f"{BEARER} required;\nsasl.oauthbearer.token.endpoint.url=file://{tmp_path}/token\n#"
    terminal.log_in("by-file", mechanism="OAUTHBEARER", jaas=of_file)
    for name in ("by-name", "by-file"):
        assert "orders" in terminal.run(name, "topic", "list").stdout
        assert terminal.json(name, "acl", "list") == {"acls": []}
    (tmp_path / "token").write_text("a.b.c")
    assert "(SASL_AUTHENTICATION_FAILED)" in terminal.run("by-file", "acl", "list", status=1).stderr


def test_quotas_are_set_listed_and_removed(terminal: Terminal) -> None:
    terminal.run("admin", "quota", "set", "producer_byte_rate=1000", "--user", "ada", "--client-id-default")
    (found,) = terminal.json("admin", "quota", "list")["quotas"]
    assert found == {"entity": {"client-id": None, "user": "ada"}, "quotas": {"producer_byte_rate": 1000.0}}
    terminal.run("admin", "quota", "remove", "producer_byte_rate", "--user", "ada", "--client-id-default")
    assert terminal.json("admin", "quota", "list") == {"quotas": []}
    refused = terminal.run("ada", "quota", "set", "producer_byte_rate=1", "--user", "ada", status=1)
    assert "(CLUSTER_AUTHORIZATION_FAILED)" in refused.stderr


def test_a_token_is_a_login_until_it_ends(terminal: Terminal) -> None:
    made = terminal.json("ada", "token", "create")
    assert (made["owner"], made["renewers"]) == ("User:ada", [])
    jaas = f'{SCRAM} required username="{made["token_id"]}" password="{made["hmac"]}" tokenauth="true"'
    terminal.log_in("token", mechanism="SCRAM-SHA-256", jaas=jaas)
    terminal.run("token", "transactions", "list")
    (listed,) = terminal.json("ada", "token", "list")["tokens"]
    assert listed["token_id"] == made["token_id"]
    assert "hmac" not in listed
    terminal.run("ada", "token", "renew", stdin=made["hmac"])
    terminal.run("ada", "token", "expire", stdin=made["hmac"])
    terminal.run("token", "transactions", "list", status=1)
    assert terminal.json("ada", "token", "list") == {"tokens": []}
