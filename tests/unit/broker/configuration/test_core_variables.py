"""Nodes that share one file of properties, and what it has to say for each of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.broker.configuration.core_collisions import check_distinct
from penstock.broker.configuration.core_variables import properties_of_core
from penstock.broker.configuration.node_config import NodeConfig
from penstock.broker.configuration.properties import load_properties
from penstock.protocol.errors import ConfigError
from penstock.storage.disk.memory_files import MemoryFiles

SHARED = {
    "node.id": "${core:101}",
    "listeners": "PLAINTEXT://10.0.0.1:${core:9092},CONTROLLER://10.0.0.1:9093",
    "controller.quorum.voters": "101@10.0.0.1:9093,201@10.0.0.2:9093,301@10.0.0.3:9093",
    "cluster.secret": "something long",
    "log.dirs": "/data/${core:0}",
}
# A second listener of brokers: as far from the first as there may be nodes.
PORTS = {"listeners": "PLAINTEXT://10.0.0.1:${core:9092},CONTROLLER://10.0.0.1:9091"}


def nodes(properties: Mapping[str, str], count: int = 3) -> tuple[NodeConfig, ...]:
    told = [properties_of_core(properties, core, host_name="alpha") for core in range(count)]
    configs = tuple(load_properties(one, files=MemoryFiles(), environment={}) for one in told)
    check_distinct(configs)
    return configs


def test_each_node_has_the_base_and_its_number() -> None:
    configs = nodes({**SHARED, **PORTS})
    assert [config.node_id for config in configs] == [101, 102, 103]
    assert [config.listeners[0].port for config in configs] == [9092, 9093, 9094]
    assert [config.log_dirs for config in configs] == [("/data/0",), ("/data/1",), ("/data/2",)]


def test_a_variable_is_replaced_in_those_of_other_providers() -> None:
    properties = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "log.dirs": "${env:DISK_${core:1}}",
    }
    told = properties_of_core(properties, 1, host_name="alpha")
    config = load_properties(told, files=MemoryFiles(), environment={"DISK_2": "/disk-2"})
    assert config.log_dirs == ("/disk-2",)


def test_the_nodes_of_a_host_are_one_rack() -> None:
    assert {config.broker_rack for config in nodes({**SHARED, **PORTS})} == {"alpha"}
    assert {config.broker_rack for config in nodes({**SHARED, **PORTS, "broker.rack": "row-7"})} == {"row-7"}


def test_those_that_the_quorum_names_are_controllers_and_all_are_brokers() -> None:
    assert [config.process_roles for config in nodes({**SHARED, **PORTS})] == [
        ("broker", "controller"),
        ("broker",),
        ("broker",),
    ]
    told = {**SHARED, **PORTS, "process.roles": "broker", "controller.quorum.voters": "1@10.0.0.9:9093"}
    assert {config.process_roles for config in nodes(told)} == {("broker",)}


@pytest.mark.parametrize("base", ["", "x", "-1", "1.5", "٣"])
def test_a_base_is_a_number(base: str) -> None:
    with pytest.raises(ConfigError, match=r"log\.dirs has the variable .* base is no number"):
        properties_of_core({"log.dirs": f"/data/${{core:{base}}}"}, 0, host_name="alpha")


def test_a_provider_cannot_have_the_name_of_the_variable() -> None:
    with pytest.raises(ConfigError, match=r"config\.providers names core"):
        properties_of_core({"config.providers": "env, core"}, 0, host_name="alpha")


def test_a_node_alone_does_not_take_the_variable_for_a_value() -> None:
    with pytest.raises(ConfigError, match=r"log\.dirs has the variable \$\{core:0\}, which is for nodes .* --per-core"):
        load_properties({"log.dirs": "/data/${core:0}"}, files=MemoryFiles(), environment={})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"node.id": "101"}, r"node\.id is 101 for more than one node .* node\.id=\$\{core:101\}"),
        (
            {"listeners": "PLAINTEXT://10.0.0.1:9092,CONTROLLER://10.0.0.1:9091"},
            r"listeners gives nodes 101 and 102 one address, PLAINTEXT://10.0.0.1:9092. .* \$\{core:9092\}",
        ),
        (
            # The second broker has the port of the controller.
            {"listeners": "PLAINTEXT://:${core:9092},CONTROLLER://10.0.0.1:9093"},
            r"listeners gives nodes 101 and 102 one address, PLAINTEXT://:9093\.",
        ),
        (
            {"advertised.listeners": "PLAINTEXT://kafka.example.org:9092"},
            r"advertised\.listeners gives nodes 101 and 102 one address, PLAINTEXT://kafka\.example\.org:9092\.",
        ),
        (
            {"admin.listeners": "http://10.0.0.1:${core:9093}"},
            r"listeners gives nodes 101 and 102 one address, PLAINTEXT://10\.0\.0\.1:9093 \(admin\.listeners\)\.",
        ),
        (
            {"admin.listeners": "http://127.0.0.1:8083"},
            r"admin\.listeners gives nodes 101 and 102 one address, http://127\.0\.0\.1:8083\.",
        ),
        ({"log.dirs": "/data,/more"}, r"log\.dirs gives nodes 101 and 102 one folder, /data\. .*/data/\$\{core:101\}"),
        ({"metadata.log.dir": "/fast/"}, r"metadata\.log\.dir gives nodes 101 and 102 one folder, /fast/\."),
        ({"controller.quorum.voters": " "}, r"controller\.quorum\.voters must be set for 3 nodes"),
    ],
)
def test_what_two_nodes_must_not_share_is_refused_by_its_key(changed: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        nodes({**SHARED, **PORTS, **changed})


def test_one_core_needs_no_variable() -> None:
    (config,) = nodes({}, count=1)
    assert (config.node_id, config.broker_rack, config.is_controller) == (1, "alpha", True)
