"""What consumer groups obey: what the broker was told at start, what is changed while it runs, what a group says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.broker.configuration.consumer_config import GroupSettings, MigrationPolicy
from penstock.broker.configuration.node_config import load
from penstock.broker.configuration.topic_configs import ConfigResolver
from penstock.protocol.errors import ConfigError
from penstock.protocol.ids import ControllerEpoch
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, ConfigResourceType, MetadataImage
from penstock.quorum.metadata.records import ConfigRecord

DEFAULTS = GroupSettings(session_timeout_ms=45_000, heartbeat_interval_ms=5_000, assignment_interval_ms=1_000)


def commit(resolver: ConfigResolver, base: MetadataImage, *records: ConfigRecord) -> MetadataImage:
    delta = MetadataDelta(base)
    for record in records:
        delta.replay(record)
    image = delta.apply(offset=base.offset + 1, epoch=ControllerEpoch(1), timestamp_ms=0)
    resolver.publish(delta, image)
    return image


def config(kind: ConfigResourceType, name: str, key: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def test_kafkas_defaults_are_the_defaults_of_a_group() -> None:
    assert ConfigResolver(load({})).group_settings(EMPTY_IMAGE, "group") == DEFAULTS
    consumer = load({}).groups.consumer
    assert consumer.assignors == ("uniform", "range")
    assert consumer.max_size == 2**31 - 1
    assert consumer.migration_policy is MigrationPolicy.BIDIRECTIONAL
    assert consumer.regex_refresh_interval_ms == 600_000


def test_a_group_obeys_its_own_configs_then_the_brokers() -> None:
    resolver = ConfigResolver(load({"group.consumer.heartbeat.interval.ms": "7000"}))
    image = commit(
        resolver, EMPTY_IMAGE, config(ConfigResourceType.GROUP, "group", "consumer.session.timeout.ms", "50000")
    )
    others = DEFAULTS._replace(heartbeat_interval_ms=7_000)
    assert resolver.group_settings(image, "group") == others._replace(session_timeout_ms=50_000)
    assert resolver.group_settings(image, "other") == others
    image = commit(resolver, image, config(ConfigResourceType.GROUP, "group", "consumer.session.timeout.ms", None))
    assert resolver.group_settings(image, "group") == others


def test_a_dynamic_broker_config_is_what_groups_inherit_from_then_on() -> None:
    resolver = ConfigResolver(load({}))
    assert resolver.group_settings(EMPTY_IMAGE, "group") == DEFAULTS
    key = "group.consumer.assignment.interval.ms"
    image = commit(resolver, EMPTY_IMAGE, config(ConfigResourceType.BROKER, "", key, "0"))
    assert resolver.group_settings(image, "group") == DEFAULTS._replace(assignment_interval_ms=0)


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"session.timeout.ms": "1000"}, r"session\.timeout\.ms \(1000\) must be greater than or equal to .*\(45000\)"),
        ({"heartbeat.interval.ms": "16000"}, r"heartbeat\.interval\.ms \(16000\) must be less than or equal to"),
        ({"max.session.timeout.ms": "1"}, r"max\.session\.timeout\.ms \(1\) must be greater than or equal to"),
        (
            {"min.session.timeout.ms": "10", "session.timeout.ms": "5000"},
            r"heartbeat\.interval\.ms \(5000\) must be less than group\.consumer\.session\.timeout\.ms \(5000\)",
        ),
    ],
)
def test_intervals_of_the_broker_lie_within_its_own_bounds(properties: Mapping[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load({f"group.consumer.{name}": value for name, value in properties.items()})


@pytest.mark.parametrize("assignors", ["", "sticky", "uniform,org.example.MyAssignor"])
def test_assignors_that_there_are_not_are_refused_at_start(assignors: str) -> None:
    with pytest.raises(ConfigError, match=r"group\.consumer\.assignors"):
        load({"group.consumer.assignors": assignors})


@pytest.mark.parametrize("policy", ["Disabled", "UPGRADE", "downgrade", "bidirectional"])
def test_the_policy_of_migration_is_read_in_any_case(policy: str) -> None:
    assert load({"group.consumer.migration.policy": policy}).groups.consumer.migration_policy.value == policy.lower()
