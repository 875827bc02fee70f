"""The command line beats the environment, and both beat the file."""

import traceback

import pytest

from penstock.broker.configuration.dynamic_configs import load_dynamic
from penstock.broker.configuration.properties import (
    load_properties,
    merge_properties,
    properties_of_assignments,
    properties_of_environment,
    shown_secrets,
)
from penstock.protocol.errors import ConfigError
from penstock.quorum.configs.effective import BrokerConfigs
from penstock.storage.disk.memory_files import MemoryFiles


def test_the_environment_names_keys_in_capitals_with_underscores() -> None:
    environment = {"PENSTOCK_LOG_DIRS": "/a", "PENSTOCK_A__B": "1", "PENSTOCK_A___B": "2", "LOG_DIRS": "/b"}
    environment["PENSTOCK_ADMIN"] = "http://127.0.0.1:1"  # of commands, no key
    assert properties_of_environment(environment) == {"log.dirs": "/a", "a_b": "1", "a-b": "2"}


def test_the_command_line_beats_the_environment_and_both_beat_the_file() -> None:
    merged = merge_properties(
        file_text="node.id=1\nnum.partitions=1\nlog.dirs=/a",
        environment={"PENSTOCK_NODE_ID": "2", "PENSTOCK_NUM_PARTITIONS": "2"},
        assignments=["node.id=3", "listeners=PLAINTEXT://:1=2"],
    )
    assert merged == {"node.id": "3", "num.partitions": "2", "log.dirs": "/a", "listeners": "PLAINTEXT://:1=2"}


@pytest.mark.parametrize("wrong", ["num.partitions", "=1", " =1"])
def test_an_assignment_needs_a_key_and_a_value(wrong: str) -> None:
    with pytest.raises(ConfigError, match="--set takes key=value"):
        properties_of_assignments([wrong])


_PROVIDER = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


def test_a_node_takes_what_its_providers_give() -> None:
    properties = {**_PROVIDER, "cluster.secret": "${env:MARK}", "num.partitions": "${env:COUNT}"}
    environment = {"MARK": "hunter2hunter2\n", "COUNT": "5"}
    config = load_properties(properties, files=MemoryFiles(), environment=environment)
    assert (config.cluster_secret, config.num_partitions) == (b"hunter2hunter2", 5)
    assert config.variables == {"cluster.secret": "${env:MARK}", "num.partitions": "${env:COUNT}"}
    assert "hunter2" not in repr(config)
    assert not [warning for warning in config.warnings if "config.providers" in warning]


def test_a_refusal_has_the_variable_and_not_what_it_stands_for() -> None:
    properties = {**_PROVIDER, "num.partitions": "${env:MARK}"}
    environment = {"MARK": "hunter2"}
    with pytest.raises(ConfigError) as raised:
        load_properties(properties, files=MemoryFiles(), environment=environment)
    assert str(raised.value) == ("Invalid value ${env:MARK} for configuration num.partitions: Not a number of type INT")
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_a_refused_dynamic_config_has_the_variable_of_a_static_one() -> None:
    properties = {**_PROVIDER, "broker.rack": "${env:MARK}", "listeners": "PLAINTEXT://127.0.0.1:0"}
    static = load_properties(properties, files=MemoryFiles(), environment={"MARK": "hunter2"})
    assert load_dynamic(static, BrokerConfigs(static=static.properties)).variables == static.variables


def test_passwords_on_the_command_line_are_named() -> None:
    assignments = ["cluster.secret=${env:MARK}", "ssl.key.password=x", "num.partitions=1", "log.level=INFO"]
    assert shown_secrets(assignments, {}) == ["cluster.secret", "ssl.key.password"]
    assert shown_secrets(assignments, {"cluster.secret": "${env:MARK}"}) == ["ssl.key.password"]
