"""The compose file is one by the specification, and its nodes are one cluster that clients inside and outside reach."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_files import DEPLOY, ROOT, node_started_by
from jsonschema import Draft202012Validator

from penstock.broker.configuration.node_config import NodeConfig

COMPOSE = DEPLOY / "compose" / "compose.yaml"
VARIABLES = {"CLUSTER_SECRET": "told by the shell"}
NODES = ("node-1", "node-2", "node-3")


@cache
def compose() -> dict[str, Any]:
    """The file with its variables put in."""

    def value(match: re.Match[str]) -> str:
        name, _, default = match[1].partition(":-")
        return VARIABLES.get(name.partition(":?")[0], default)

    read: dict[str, Any] = yaml.safe_load(re.sub(r"\$\{([^}]+)\}", value, COMPOSE.read_text()))
    return read


@pytest.fixture
def nodes(tmp_path: Path) -> dict[str, NodeConfig]:
    return {name: node_started_by(tmp_path, compose()["services"][name]["environment"]) for name in NODES}


def test_the_file_is_valid_by_the_specification() -> None:
    schema = json.loads((ROOT / "tests" / "golden" / "compose-spec.json").read_text())
    Draft202012Validator(schema).validate(compose())


def test_a_misspelled_key_would_not_be_valid() -> None:
    schema = json.loads((ROOT / "tests" / "golden" / "compose-spec.json").read_text())
    broken = {"services": {"node-1": {**compose()["services"]["node-1"], "prots": []}}}
    assert not Draft202012Validator(schema).is_valid(broken)


def test_the_nodes_are_the_voters_of_one_cluster(nodes: dict[str, NodeConfig]) -> None:
    for name, config in nodes.items():
        assert f"node-{config.node_id}" == name == compose()["services"][name]["hostname"]
        assert config.cluster_secret
        assert {f"node-{number}" for number in config.voters} == set(NODES)
        assert {voter.host for voter in config.voters.values()} == set(NODES)
        assert {voter.port for voter in config.voters.values()} == {one.port for one in config.controller_listeners}
    assert len({config.cluster_id for config in nodes.values()}) == 1


def test_each_node_advertises_where_it_is_reached_from_inside_and_outside(nodes: dict[str, NodeConfig]) -> None:
    outside = set()
    for name, config in nodes.items():
        bound = {one.name: one.port for one in config.listeners}
        advertised = {one.name: (one.host, one.port) for one in config.advertised_listeners}
        assert advertised["INSIDE"] == (name, bound["INSIDE"])
        assert config.inter_broker_listener_name == "INSIDE"
        host, port = advertised["OUTSIDE"]
        assert f"{host}:{port}:{bound['OUTSIDE']}" in compose()["services"][name]["ports"]
        outside.add(port)
        (admin,) = config.admin_listeners
        # Prometheus asks by the service's name, which is a name of the node only when it is advertised.
        assert [(one.host, one.port) for one in config.admin_advertised_listeners] == [(name, admin.port)]
        assert any(mapped.endswith(f":{admin.port}") for mapped in compose()["services"][name]["ports"])
    assert len(outside) == len(NODES)


def test_data_outlive_the_containers_and_stops_are_given_time(nodes: dict[str, NodeConfig]) -> None:
    for name in nodes:
        service = compose()["services"][name]
        assert service["volumes"] == [f"{name}:/var/lib/penstock"]
        assert service["stop_grace_period"] == "3m"
    assert set(NODES) <= compose()["volumes"].keys()


def test_no_port_is_open_to_other_machines_and_none_is_given_twice() -> None:
    ports = [mapped for service in compose()["services"].values() for mapped in service.get("ports", ())]
    assert all(mapped.startswith("127.0.0.1:") for mapped in ports)
    taken = [mapped.split(":")[1] for mapped in ports]
    assert sorted(taken) == sorted(set(taken))


def test_files_that_are_mounted_are_there() -> None:
    for service in compose()["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in compose()["volumes"] or (COMPOSE.parent / source).exists(), source
        if "build" in service:
            context = COMPOSE.parent / service["build"]["context"]
            assert (context / service["build"]["dockerfile"]).exists()


def test_prometheus_asks_each_node_and_grafana_asks_prometheus(nodes: dict[str, NodeConfig]) -> None:
    (job,) = yaml.safe_load((DEPLOY / "compose" / "prometheus.yml").read_text())["scrape_configs"]
    (targets,) = job["static_configs"]
    assert targets["targets"] == [f"{name}:{config.admin_listeners[0].port}" for name, config in nodes.items()]
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in compose()["services"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "penstock.yml").read_text())["providers"]
    assert any(
        mount.split(":")[1] == provider["options"]["path"] for mount in compose()["services"]["grafana"]["volumes"]
    )


def test_the_user_interface_begins_at_the_nodes(nodes: dict[str, NodeConfig]) -> None:
    servers = compose()["services"]["kafka-ui"]["environment"]["KAFKA_BROKERS"]
    assert servers.split(",") == [f"{name}:9092" for name in nodes]
