"""The configuration in effect follows the metadata."""

import dataclasses
import logging
from uuid import UUID

import pytest

from penstock.broker.configuration.node_config import NodeConfig, load
from penstock.broker.configuration.topic_configs import ConfigResolver
from penstock.protocol.ids import ControllerEpoch, TopicId
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, ConfigResourceType, MetadataImage
from penstock.quorum.metadata.records import ConfigRecord, MetadataRecord, TopicRecord
from penstock.storage.log.rules.config import LogConfig


def config(kind: ConfigResourceType, name: str, key: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def broker_config(key: str, value: str | None, *, name: str = "1") -> ConfigRecord:
    return config(ConfigResourceType.BROKER, name, key, value)


def commit(resolver: ConfigResolver, base: MetadataImage, *records: MetadataRecord) -> MetadataImage:
    delta = MetadataDelta(base)
    for record in records:
        delta.replay(record)
    image = delta.apply(offset=base.offset + 1, epoch=ControllerEpoch(1), timestamp_ms=0)
    resolver.publish(delta, image)
    return image


def test_kafkas_defaults_are_the_defaults_of_a_log() -> None:
    assert ConfigResolver(load({})).default_log_config == LogConfig()


def test_a_topic_obeys_its_own_configs_then_the_brokers() -> None:
    resolver = ConfigResolver(load({"log.retention.hours": "1", "log.segment.bytes": "2000000"}))
    image = commit(
        resolver,
        EMPTY_IMAGE,
        TopicRecord(name="a", topic_id=TopicId(UUID(int=1))),
        config(ConfigResourceType.TOPIC, "a", "segment.bytes", "3000000"),
        config(ConfigResourceType.TOPIC, "a", "cleanup.policy", "compact, delete"),
    )
    log_config = resolver.log_config(image, "a")
    assert (log_config.segment_bytes, log_config.retention_ms) == (3_000_000, 3_600_000)
    assert log_config.cleanup_policy == {"compact", "delete"}
    assert resolver.log_config(image, "b").segment_bytes == 2_000_000


def test_a_dynamic_broker_config_is_what_topics_inherit_from_then_on() -> None:
    resolver = ConfigResolver(load({"log.retention.hours": "1"}))
    image = commit(resolver, EMPTY_IMAGE, broker_config("log.retention.ms", "5", name=""))
    assert resolver.log_config(image, "a").retention_ms == 5
    image = commit(resolver, image, broker_config("log.retention.ms", "7"))
    assert resolver.log_config(image, "a").retention_ms == 7
    image = commit(
        resolver, image, broker_config("log.retention.ms", None), broker_config("log.retention.ms", None, name="")
    )
    assert resolver.log_config(image, "a").retention_ms == 3_600_000


def test_internal_segment_bytes_goes_below_the_least_segment_bytes() -> None:
    resolver = ConfigResolver(load({}))
    image = commit(resolver, EMPTY_IMAGE, config(ConfigResourceType.TOPIC, "a", "internal.segment.bytes", "1000"))
    assert resolver.log_config(image, "a").segment_bytes == 1000


def test_topics_with_the_same_configs_share_one_log_config() -> None:
    resolver = ConfigResolver(load({}))
    image = commit(
        resolver, EMPTY_IMAGE, *(config(ConfigResourceType.TOPIC, name, "retention.ms", "5") for name in ("a", "b"))
    )
    assert resolver.log_config(image, "a") is resolver.log_config(image, "b")


def test_a_listener_of_broker_configs_is_called_after_a_change_once_it_is_in_effect() -> None:
    resolver = ConfigResolver(load({"max.connections": "10"}))
    heard: list[tuple[NodeConfig, NodeConfig]] = []
    resolver.on_change(lambda old, new: heard.append((old, new)))
    image = commit(resolver, EMPTY_IMAGE, broker_config("max.connections", "20"))
    assert [(old.max_connections, new.max_connections) for old, new in heard] == [(10, 20)]
    assert resolver.node_config.max_connections == 20
    commit(resolver, image, config(ConfigResourceType.TOPIC, "a", "retention.ms", "5"))
    commit(resolver, image, broker_config("max.connections", "30", name="2"))
    assert len(heard) == 1


def test_what_was_told_at_start_stays_known() -> None:
    resolver = ConfigResolver(load({"max.connections": "10"}))
    commit(resolver, EMPTY_IMAGE, broker_config("max.connections", "20"))
    assert resolver.node_config.properties == {"max.connections": "10"}
    assert dataclasses.replace(resolver.node_config, max_connections=10) == resolver.static_config


def test_unknown_keys_and_quotas_change_nothing_here() -> None:
    resolver = ConfigResolver(load({}))
    commit(
        resolver,
        EMPTY_IMAGE,
        broker_config("my.plugin.key", "1"),
        broker_config("leader.replication.throttled.rate", "5"),
    )
    assert resolver.node_config == resolver.static_config


def test_dynamic_configs_that_cannot_be_are_logged_and_not_obeyed(caplog: pytest.LogCaptureFixture) -> None:
    resolver = ConfigResolver(load({}))
    with caplog.at_level(logging.ERROR):
        commit(resolver, EMPTY_IMAGE, broker_config("message.max.bytes", "x"))
    assert resolver.node_config == resolver.static_config
    assert resolver.broker_configs.dynamic == {}
    assert "Invalid value x for configuration message.max.bytes" in caplog.text
