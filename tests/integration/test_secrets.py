"""A mark in every password that a node can be given, and a look for it wherever a node tells something."""

from __future__ import annotations

import json
import random
import re
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from waiting import wait_for

from penstock import cli
from penstock.broker.configuration.penstock_keys import PENSTOCK_KEYS
from penstock.local.cluster import LocalCluster
from penstock.local.local_node import LocalNode
from penstock.local.ports import find_free
from penstock.quorum.configs.definition import ConfigType
from penstock.quorum.configs.table import broker_configs

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

DEADLINE_S = 30.0
MARK = "mark-4b1d"
PASSWORD_KEYS = sorted(
    [name for name, definition in broker_configs().items() if definition.type is ConfigType.PASSWORD]
    + [name for name, key in PENSTOCK_KEYS.items() if key.type is ConfigType.PASSWORD]
)
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_ada="{MARK}-ada";'
# These have a syntax.
READ_AT_START = {
    "sasl.jaas.config": JAAS,
    "cluster.scram.credentials": f"SCRAM-SHA-256=[name=carol,password={MARK}-carol]",
}
DYNAMIC = {
    "listener.name.sasl.ssl.key.password": f"{MARK}-dynamic",
    "listener.name.sasl.plain.sasl.jaas.config": JAAS.replace("-ada", "-dynamic"),
}


def marked(folder: Path) -> dict[str, str]:
    """Every password, of all listeners and of one, from the properties and from a file that only they name."""
    (folder / "given").write_text(f"{MARK}-given\n")
    values = {name: READ_AT_START.get(name, f"{MARK}-{name}") for name in PASSWORD_KEYS}
    return {
        **values,
        **{f"listener.name.sasl.{name}": value for name, value in values.items() if name.startswith("ssl.")},
        "listener.name.sasl.plain.sasl.jaas.config": JAAS,
        "listener.name.plaintext.scram-sha-256.sasl.jaas.config": JAAS,
        # A plug-in's: what is not known might be a password.
        "rsm.config.secret.access.key": f"{MARK}-plug-in",
        "config.providers": "dir",
        "config.providers.dir.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
        "config.providers.dir.param.allowed.paths": str(folder),
        "cluster.secret": f"${{dir:{folder}:given}}",
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    port = find_free(random.Random())

    def with_sasl(node: LocalNode) -> dict[str, str]:
        return {"listeners": f"PLAINTEXT://{node.address},SASL://127.0.0.1:{port}"}

    folder = tmp_path_factory.mktemp("secrets")
    properties = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "log.level": "TRACE",
    }
    with LocalCluster(
        folder / "cluster", properties={**properties, **marked(folder)}, properties_of=with_sasl
    ) as running:
        alter(AdminClient({"bootstrap.servers": running.bootstrap}), DYNAMIC)
        yield running


def alter(admin: AdminClient, values: Mapping[str, str]) -> None:
    """Raises KafkaException."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in values.items()]
    broker = ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)
    admin.incremental_alter_configs([broker], request_timeout=DEADLINE_S)[broker].result(DEADLINE_S)


def node_of(cluster: LocalCluster) -> LocalNode:
    (node,) = cluster.nodes.values()
    return node


def test_the_protocol_tells_that_there_is_a_value_and_not_which(cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    broker = ConfigResource(ResourceType.BROKER, "1")
    described = admin.describe_configs([broker], request_timeout=DEADLINE_S)[broker].result(DEADLINE_S)
    hidden = [*PASSWORD_KEYS, *DYNAMIC, "rsm.config.secret.access.key"]
    for name in hidden:
        assert described[name].is_sensitive, name
        assert described[name].value is None, name
    assert MARK not in "".join(
        f"{one} {one.value} {[synonym.value for synonym in one.synonyms.values()]}" for one in described.values()
    )


def test_http_tells_none(cluster: LocalCluster) -> None:
    address = node_of(cluster).admin

    def get(path: str) -> str:
        with urllib.request.urlopen(f"{address}{path}", timeout=DEADLINE_S) as answer:
            return str(answer.read().decode())

    paths: dict[str, Any] = json.loads(get("/openapi.json"))["paths"]
    cluster_id = json.loads(get("/v3/clusters"))["data"][0]["cluster_id"]
    places = {"cluster_id": cluster_id, "broker_id": "1", "node_id": "1", "id": "1", "name": "1", "type": "broker"}
    asked = {
        path: re.sub(r"\{(\w+)\}", lambda match: places.get(match[1], "1"), path)
        for path, operations in paths.items()
        if "get" in operations and "stream" not in path and not path.startswith("/v1/events")
    }
    assert len(asked) > 20
    answers = {}
    for path in ["/metrics", "/v1/configs/broker/1", *asked.values()]:
        try:
            answers[path] = get(path)
        except urllib.error.HTTPError as error:
            with error:
                answers[path] = error.read().decode()
    assert "ssl.key.password" in answers["/v1/configs/broker/1"]
    assert sum("ssl.key.password" in answer for answer in answers.values()) >= 2, "two APIs tell configs"
    assert [path for path, answer in answers.items() if MARK in answer] == []


def test_a_refused_config_is_told_without_its_value(cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    refused = {
        "listener.name.sasl.plain.sasl.jaas.config": f"{MARK} nonsense",
        "ssl.key.password": f"{MARK}-everywhere",
    }
    for name, value in refused.items():
        with pytest.raises(KafkaException) as raised:
            alter(admin, {name: value})
        assert name in str(raised.value)
        assert MARK not in str(raised.value)


def test_the_terminal_takes_passwords_from_files_and_prints_none(cluster: LocalCluster, tmp_path: Path) -> None:
    address = str(node_of(cluster).admin)
    key = "listener.name.sasl.ssl.key.password"

    def run(*words: str) -> Result:
        return CliRunner().invoke(cli.main, ["config", *words, "--admin", address], prog_name="penstock")

    refused = run("set", "broker/1", f"{key}={MARK}-typed")
    assert refused.exit_code == 2
    assert "can read command lines" in " ".join(refused.output.split())
    (tmp_path / "password").write_text(f"{MARK}-file\n")
    told = run("set", "broker/1", "--from-file", f"{key}={tmp_path}/password", "--json")
    assert json.loads(told.stdout)["set"] == {key: None}
    shown = run("describe", "broker/1", "--doc").output + run("get", "broker/1", key, "--json").output
    assert f"{key}=(hidden)" in shown
    assert MARK not in refused.output + told.output + shown
    stream = urllib.request.urlopen(f"{address}/v1/events", timeout=DEADLINE_S)
    with stream:
        assert MARK not in str(stream.read1(65536))


def test_the_metadata_on_the_disk_are_shown_without_them(cluster: LocalCluster) -> None:
    """As in Apache Kafka, they are in the metadata as they were given: a reader of the disk has them."""
    node = node_of(cluster)
    folder = node.data / "__cluster_metadata-0"
    wait_for(lambda: any(MARK.encode() in path.read_bytes() for path in folder.iterdir()), "the journal has them")
    shown = CliRunner().invoke(cli.main, ["metadata", "shell", "-d", str(node.data), "tree", "/"])
    assert shown.exit_code == 0, shown.output
    assert "listener.name.sasl.ssl.key.password: [redacted]" in shown.output
    assert MARK not in shown.output


def test_the_log_and_the_command_lines_have_none(cluster: LocalCluster) -> None:
    node = node_of(cluster)
    log = node.log.read_text()
    assert "Penstock started" in log
    assert MARK not in log
    assert node.process is not None
    command_lines = {
        path.parent.name: path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.exists()
    }
    assert str(node.properties) in command_lines[str(node.process.pid)]
    assert [line for line in command_lines.values() if MARK in line] == []


def test_files_with_secrets_are_for_their_owner(cluster: LocalCluster) -> None:
    node = node_of(cluster)
    having = [path for path in (node.properties, *node.data.parent.glob("*.json")) if MARK in path.read_text()]
    assert node.properties in having
    assert [path for path in having if path.stat().st_mode & 0o077] == []
