"""Whether the dynamic configs of a resource can be: Kafka's rules and sentences."""

from collections.abc import Mapping
from typing import Final

from ...protocol.errors import ConfigError, ErrorCode, KafkaError
from .definition import ConfigValue
from .effective import defaults_of, parsed
from .table import ConfigTable, broker_configs, client_metrics_configs, group_configs, own_configs, topic_configs
from .tier_validation import SYSTEM_ENABLED, validate_tier

_NOTHING: Final[Mapping[str, str]] = {}
# What a client metrics subscription may select clients by (KIP-714).
_MATCH_KEYS: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
_INTERVAL_MS_MIN: Final = 100
_INTERVAL_MS_MAX: Final = 3_600_000
# Each must lie between the broker keys `group.<kind>.min.<rest>` and `group.<kind>.max.<rest>`, as far as they exist.
_BOUNDED_GROUP_KEYS: Final = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.num.standby.replicas",
    "streams.assignment.interval.ms",
)


def validate_topic_config(
    values: Mapping[str, str | None],
    *,
    in_effect: Mapping[str, str] = _NOTHING,
    existing: Mapping[str, str] = _NOTHING,
) -> None:
    """Refuses dynamic configs that a topic cannot have, all of them together.

    `in_effect` are the broker's properties (`BrokerConfigs.overlaid`), which give the keys that are not set;
    `existing` is what is set for the topic now. Raises KafkaError INVALID_CONFIG.
    """
    parsed_values = _parse(topic_configs(), "topic", values, in_effect)
    lag_min, lag_max = parsed_values["min.compaction.lag.ms"], parsed_values["max.compaction.lag.ms"]
    if isinstance(lag_min, int) and isinstance(lag_max, int) and lag_min > lag_max:
        raise _invalid(
            f"conflict topic config setting min.compaction.lag.ms ({lag_min}) > max.compaction.lag.ms ({lag_max})"
        )
    is_system_enabled = broker_configs().value(in_effect, SYSTEM_ENABLED) is True
    validate_tier(parsed_values, existing, is_system_enabled=is_system_enabled)


def validate_group_config(values: Mapping[str, str | None], *, in_effect: Mapping[str, str] = _NOTHING) -> None:
    """Refuses dynamic configs that a group cannot have. Raises KafkaError INVALID_CONFIG."""
    parsed_values = _parse(group_configs(), "group", values, in_effect)
    for key in _BOUNDED_GROUP_KEYS:
        value = _number(parsed_values[key])
        kind, _, rest = key.partition(".")
        for bound, word in (("min", "greater"), ("max", "less")):
            bound_key = f"group.{kind}.{bound}.{rest.removeprefix('num.')}"
            # The broker's own default may lie outside; only what the group says is judged.
            if bound_key in broker_configs() and (key in values or not key.endswith("assignment.interval.ms")):
                limit = _number(broker_configs().value(in_effect, bound_key))
                if value < limit if bound == "min" else value > limit:
                    raise _invalid(f"{key} must be {word} than or equal to {bound_key}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _number(parsed_values[session]) <= _number(parsed_values[heartbeat]):
            raise _invalid(f"{session} must be greater than {heartbeat}")


def validate_client_metrics_config(values: Mapping[str, str | None]) -> None:
    """Refuses what a client metrics subscription cannot have. Raises KafkaError INVALID_REQUEST or INVALID_CONFIG."""
    for name in values:
        if name not in client_metrics_configs():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    parsed_values = _parse(client_metrics_configs(), "client metrics", values, _NOTHING)
    interval_ms = _number(parsed_values["interval.ms"])
    if not _INTERVAL_MS_MIN <= interval_ms <= _INTERVAL_MS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between {_INTERVAL_MS_MIN} and "
            f"{_INTERVAL_MS_MAX} (1 hour)",
        )
    patterns = parsed_values["match"]
    for pattern in patterns if isinstance(patterns, tuple) else ():
        name, _, expression = pattern.partition("=")
        # As Java's `split`: exactly one equals sign, something behind it.
        if "=" in expression or name.strip() not in _MATCH_KEYS or not _is_expression(expression.strip()):
            raise _invalid(f"Illegal client matching pattern: {pattern}")


def validate_broker_config(values: Mapping[str, str]) -> None:
    """Refuses values that no broker could read. Raises KafkaError INVALID_REQUEST.

    A broker that is asked checks more, against its own properties; of a controller this can be asked as well, and what
    it writes its own decisions read (`min.insync.replicas`).
    """
    for name, text in values.items():
        definition = broker_configs().get(name) or own_configs().get(name)
        if definition is not None:
            try:
                definition.parse(text)
            except ConfigError as error:
                raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error


def _parse(
    table: ConfigTable, kind: str, values: Mapping[str, str | None], in_effect: Mapping[str, str]
) -> dict[str, ConfigValue]:
    nulls = [name for name, value in values.items() if value is None]
    if nulls:
        raise _invalid(f"Null value not supported for {kind} configs: {','.join(nulls)}")
    for name in values:
        if name not in table:
            raise _invalid(f"Unknown {kind} config name: {name}")
    texts = {name: value for name, value in values.items() if value is not None}
    try:
        return {**defaults_of(table, in_effect), **parsed(table, texts)}
    except ConfigError as error:
        raise _invalid(str(error)) from error


def _number(value: ConfigValue) -> int:
    assert isinstance(value, int)
    return value


def _is_expression(text: str) -> bool:
    # Loaded where subscriptions are made, so that other nodes start without it. Clients choose the text that is
    # matched, so no expression may take time without a bound: RE2 has none that does.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(text, options)
    except re2.error:
        return False
    return bool(text)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
