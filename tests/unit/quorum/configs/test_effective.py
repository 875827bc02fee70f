"""Which of the values that were said about a key counts (KIP-226)."""

import pytest

from penstock.quorum.configs.effective import (
    BrokerConfigs,
    ConfigSource,
    broker_synonyms,
    group_values,
    is_sensitive,
    resolve_topic,
    topic_values,
)


def test_dynamic_configs_of_the_broker_beat_those_of_all_brokers_and_both_beat_the_file() -> None:
    configs = BrokerConfigs(
        dynamic={"max.connections": "1"},
        dynamic_default={"max.connections": "2", "message.max.bytes": "2"},
        static={"max.connections": "3", "message.max.bytes": "3", "num.partitions": "3"},
    )
    assert configs.overlaid() == {"max.connections": "1", "message.max.bytes": "2", "num.partitions": "3"}
    assert [(one.value, one.source) for one in configs.synonyms("max.connections")] == [
        ("1", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("3", ConfigSource.STATIC_BROKER_CONFIG),
        ("2147483647", ConfigSource.DEFAULT_CONFIG),
    ]


def test_a_dynamic_config_hides_its_synonyms_from_the_file() -> None:
    configs = BrokerConfigs(dynamic={"log.retention.ms": "5"}, static={"log.retention.hours": "24"})
    assert configs.overlaid() == {"log.retention.ms": "5"}


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({}, 7 * 24 * 3_600_000),
        ({"log.retention.hours": "2"}, 2 * 3_600_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_a_topic_inherits_the_strongest_broker_key_in_its_own_unit(
    properties: dict[str, str], retention_ms: int
) -> None:
    assert topic_values(properties, {})["retention.ms"] == retention_ms
    assert topic_values(properties, {"retention.ms": "9"})["retention.ms"] == 9


def test_creating_a_topic_tells_which_source_decided() -> None:
    configs = BrokerConfigs(
        dynamic_default={"min.insync.replicas": "2"}, static={"log.roll.hours": "1", "min.insync.replicas": "3"}
    )
    resolved = {one.definition.name: (one.value, one.source) for one in resolve_topic(configs, {"segment.bytes": "7"})}
    assert resolved["segment.bytes"] == ("7", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert resolved["min.insync.replicas"] == ("2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    assert resolved["segment.ms"] == ("3600000", ConfigSource.STATIC_BROKER_CONFIG)
    assert resolved["retention.bytes"] == ("-1", ConfigSource.DEFAULT_CONFIG)
    assert "internal.segment.bytes" not in resolved


def test_a_group_inherits_from_the_broker() -> None:
    properties = {"group.consumer.session.timeout.ms": "50000"}
    assert group_values(properties, {})["consumer.session.timeout.ms"] == 50_000
    assert group_values(properties, {"consumer.session.timeout.ms": "46000"})["consumer.session.timeout.ms"] == 46_000


def test_a_listeners_key_stands_for_the_key_without_its_prefix() -> None:
    assert broker_synonyms("listener.name.a.max.connections") == ("listener.name.a.max.connections", "max.connections")
    assert broker_synonyms("listener.name.a.plain.sasl.jaas.config")[1] == "sasl.jaas.config"


def test_passwords_and_unknown_keys_are_never_shown() -> None:
    assert is_sensitive("ssl.key.password")
    assert is_sensitive("listener.name.a.ssl.key.password")
    assert is_sensitive("my.plugin.secret")
    assert not is_sensitive("num.partitions")
    configs = BrokerConfigs(static={"ssl.key.password": "open sesame"})
    assert [one.value for one in configs.synonyms("ssl.key.password")] == [None]
