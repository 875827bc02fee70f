"""Which broker configs may change while the broker runs, and to what (KIP-226): Kafka's rules and sentences."""

from collections.abc import Iterable, Mapping
from typing import Final

from ...protocol.errors import ConfigError, ErrorCode, KafkaError
from ...quorum.configs.definition import UpdateMode
from ...quorum.configs.effective import LISTENER_KEY, BrokerConfigs, broker_definition
from ...quorum.configs.table import broker_configs, dynamic_only
from .node_config import NodeConfig, load

# Keys that only a listener may be given dynamically, under its prefix: all listeners at once would lock everyone out.
_LISTENER_ONLY_KEYS: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
# Of a listener's keys, those that may be the same on every broker.
_CLUSTER_WIDE_LISTENER_KEYS: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)


# Sizes of thread pools, which may at most double or halve at a time.
_THREAD_COUNTS: Final = frozenset(
    {
        "background.threads",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
    }
)


def load_dynamic(static: NodeConfig, configs: BrokerConfigs) -> NodeConfig:
    """The node's configuration with its dynamic configs. Raises ConfigError when they cannot be together.

    Validates only keys that a node reads: dynamic configs may hold unknown keys, and quotas.
    """
    overlaid = configs.overlaid()
    return load(
        {
            name: value
            for name, value in overlaid.items()
            if name in static.properties or name in broker_configs() or LISTENER_KEY.fullmatch(name)
        },
        variables=static.variables,
    )


def validate_dynamic_configs(
    static: NodeConfig, configs: BrokerConfigs, values: Mapping[str, str], *, is_default: bool
) -> NodeConfig:
    """What the node would be with `values` as the dynamic configs of this broker, or with `is_default` of all brokers.

    `configs` is what holds now. Raises KafkaError INVALID_REQUEST, as Apache Kafka does for all of these.
    """
    _refuse("Cannot update these configs dynamically", (name for name in values if _is_read_only(name)))
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        (name for name in values if name in _LISTENER_ONLY_KEYS),
    )
    try:
        for name, text in values.items():
            listener_key = LISTENER_KEY.fullmatch(name)
            base = listener_key[1] if listener_key else name
            definition = broker_configs().get(base) or dynamic_only(base)
            if definition is not None:
                definition.parse(text)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    if is_default:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            (name for name in values if _is_per_broker(name)),
        )
    changed = (
        BrokerConfigs(dynamic=configs.dynamic, dynamic_default=values, static=configs.static)
        if is_default
        else BrokerConfigs(dynamic=values, dynamic_default=configs.dynamic_default, static=configs.static)
    )
    _check_thread_counts(configs.overlaid(), changed.overlaid())
    try:
        config = load_dynamic(static, changed)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    if (config.listeners, config.controller_listeners) != (static.listeners, static.controller_listeners):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Listeners cannot change while the broker runs; restart it with them."
        )
    return config


def increment(current: Mapping[str, str], operations: Iterable[tuple[str, int, str | None]]) -> dict[str, str]:
    """The broker configs after (key, operation, value): 0 set, 1 delete, 2 append to a list, 3 subtract (KIP-339).

    Raises KafkaError.
    """
    result = dict(current)
    for name, operation, value in operations:
        text = value or ""
        match operation:
            case 0:
                result[name] = text
            case 1:
                result.pop(name, None)
            case 2 | 3:
                verb = "append" if operation == 2 else "subtract"
                definition = broker_configs().get(name) or dynamic_only(name)
                if definition is None:
                    raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
                if definition.type.name != "LIST":
                    raise KafkaError(
                        ErrorCode.INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {name}"
                    )
                items = [item for item in result.get(name, definition.default or "").split(",") if item]
                for item in text.split(","):
                    if operation == 2 and item not in items:
                        items.append(item)
                    elif operation == 3 and item in items:
                        items.remove(item)
                result[name] = ",".join(items)
            case _:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    return result


def _check_thread_counts(current: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raises KafkaError INVALID_REQUEST for a step that is too large."""
    for name in sorted(_THREAD_COUNTS):
        default = broker_configs()[name].default or "1"
        old, new = int(current.get(name, default)), int(wanted.get(name, default))
        is_cleaner = name == "log.cleaner.threads"
        if is_cleaner and new < 1:
            raise _invalid("Log cleaner threads should be at least 1")
        if old // 2 <= new <= old * 2:
            continue
        is_less = new < old
        if is_cleaner:
            limit = "reduced to less than half" if is_less else "increased to more than double"
            what = f"Log cleaner threads cannot be {limit}"
        else:
            limit = "be at least half" if is_less else "not be greater than double"
            what = f"Dynamic thread count update validation failed for {name}={new}, value should {limit}"
        raise _invalid(f"{what} the current value {old}")


def _invalid(what: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"Invalid value org.apache.kafka.common.config.ConfigException: {what} for configuration Invalid dynamic "
        "configuration",
    )


def _is_read_only(name: str) -> bool:
    return name in broker_configs() and broker_configs()[name].is_read_only


def _is_per_broker(name: str) -> bool:
    listener_key = LISTENER_KEY.fullmatch(name)
    if listener_key is not None:
        return listener_key[1] not in _CLUSTER_WIDE_LISTENER_KEYS
    definition = broker_definition(name)
    return definition is not None and definition.update_mode is UpdateMode.PER_BROKER


def _refuse(sentence: str, names: Iterable[str]) -> None:
    refused = sorted(names)
    if refused:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{sentence}: [{', '.join(refused)}]")
