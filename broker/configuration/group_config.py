"""Properties of groups."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from ...protocol.errors import ConfigError
from .consumer_config import ASSIGNOR_NAMES, ConsumerGroupConfig, MigrationPolicy
from .property_values import PropertyValues

_REBALANCE_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
_CLASSIC: Final = "classic"
_CONSUMER: Final = "consumer"
_RELATIONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "greater than or equal to": operator.ge,
    "less than or equal to": operator.le,
    "less than": operator.lt,
}


class GroupConfig(Struct, frozen=True, kw_only=True):
    """Each field is Apache Kafka's property of that name, dots for underscores, unless it says otherwise."""

    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    # The properties that begin with `group.consumer.`.
    consumer: ConsumerGroupConfig
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_load_buffer_size: int
    # From offsets.retention.minutes.
    offsets_retention_ms: int
    offsets_retention_check_interval_ms: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    # Whether that was not set, and so is as many as there are brokers when these are fewer.
    is_replication_factor_capped: bool
    offsets_topic_segment_bytes: int
    offsets_topic_compression_codec: int


def load_groups(values: PropertyValues) -> GroupConfig:
    """Raises ConfigError."""
    _check_intervals(values)
    return GroupConfig(
        group_min_session_timeout_ms=values.integer("group.min.session.timeout.ms"),
        group_max_session_timeout_ms=values.integer("group.max.session.timeout.ms"),
        group_initial_rebalance_delay_ms=values.integer("group.initial.rebalance.delay.ms"),
        group_max_size=values.integer("group.max.size"),
        consumer=ConsumerGroupConfig(
            is_enabled=_CONSUMER in _rebalance_protocols(values),
            assignors=_assignors(values),
            max_size=values.integer("group.consumer.max.size"),
            migration_policy=MigrationPolicy((values.text_or_none("group.consumer.migration.policy") or "").lower()),
            regex_refresh_interval_ms=values.integer("group.consumer.regex.refresh.interval.ms"),
        ),
        offset_metadata_max_bytes=values.integer("offset.metadata.max.bytes"),
        offsets_commit_timeout_ms=values.integer("offsets.commit.timeout.ms"),
        offsets_load_buffer_size=values.integer("offsets.load.buffer.size"),
        offsets_retention_ms=60_000 * values.integer("offsets.retention.minutes"),
        offsets_retention_check_interval_ms=values.integer("offsets.retention.check.interval.ms"),
        offsets_topic_num_partitions=values.integer("offsets.topic.num.partitions"),
        offsets_topic_replication_factor=values.integer("offsets.topic.replication.factor"),
        is_replication_factor_capped=not values.is_set("offsets.topic.replication.factor"),
        offsets_topic_segment_bytes=values.integer("offsets.topic.segment.bytes"),
        offsets_topic_compression_codec=values.integer("offsets.topic.compression.codec"),
    )


def _rebalance_protocols(values: PropertyValues) -> frozenset[str]:
    """Raises ConfigError. Of `share` and `streams` there are no groups, whatever the property says."""
    protocols = frozenset(values.strings(_REBALANCE_PROTOCOLS))
    if _CLASSIC not in protocols:
        raise ConfigError(f"{_REBALANCE_PROTOCOLS}: disabling the '{_CLASSIC}' protocol is not supported.")
    return protocols


def _assignors(values: PropertyValues) -> tuple[str, ...]:
    """Raises ConfigError: only those that are built in can be had, and one is needed to be the default."""
    names = tuple(dict.fromkeys(values.strings("group.consumer.assignors")))
    unknown = [name for name in names if name not in ASSIGNOR_NAMES]
    if unknown or not names:
        known = ", ".join(ASSIGNOR_NAMES)
        raise ConfigError(f"group.consumer.assignors: expected some of {known}, found {', '.join(names) or 'none'}.")
    return names


def _check_intervals(values: PropertyValues) -> None:
    """Raises ConfigError in Kafka's words: groups that configure nothing have the values of the broker, so they must be
    within its own bounds."""
    heartbeat, session = "heartbeat.interval.ms", "session.timeout.ms"
    for rest in (heartbeat, session):
        name, least, most = f"group.consumer.{rest}", f"group.consumer.min.{rest}", f"group.consumer.max.{rest}"
        _require(values, most, "greater than or equal to", least)
        _require(values, name, "greater than or equal to", least)
        _require(values, name, "less than or equal to", most)
    _require(values, f"group.consumer.{heartbeat}", "less than", f"group.consumer.{session}")


def _require(values: PropertyValues, one: str, relation: str, other: str) -> None:
    left, right = values.integer(one), values.integer(other)
    if not _RELATIONS[relation](left, right):
        raise ConfigError(f"{one} ({left}) must be {relation} {other} ({right}).")
