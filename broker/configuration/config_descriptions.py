"""The DescribeConfigs answer for one resource: values, their sources and synonyms."""

from collections.abc import Container, Iterable, Mapping

from msgspec import Struct

from ...quorum.configs.definition import ConfigDefinition, ConfigType, format_value
from ...quorum.configs.effective import (
    BrokerConfigs,
    ConfigSource,
    ConfigSynonym,
    broker_definition,
    group_values,
)
from ...quorum.configs.table import ConfigTable, broker_configs, client_metrics_configs, group_configs, topic_configs
from .hidden_values import is_hidden
from .topic_configs import ConfigResolver


class ConfigDescription(Struct, frozen=True, kw_only=True):
    """One key of a resource, as it is shown: the value of a sensitive key is None."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[ConfigSynonym, ...]


def describe_topic(
    resolver: ConfigResolver, values: Mapping[str, str], wanted: Container[str]
) -> Iterable[ConfigDescription]:
    """The keys in `wanted` of a topic with these dynamic configs."""
    resolved = resolver.topic_values(values)
    for definition in _shown(topic_configs(), values, wanted):
        own = values.get(definition.name)
        shown = format_value(resolved[definition.name])
        yield _described(
            definition,
            shown,
            None if own is None else ConfigSource.DYNAMIC_TOPIC_CONFIG,
            # The strongest of the broker's keys, which has the others behind it.
            resolver.broker_configs.synonyms(definition.synonyms[0].name) if definition.synonyms else (),
        )


def describe_group(
    resolver: ConfigResolver, values: Mapping[str, str], wanted: Container[str]
) -> Iterable[ConfigDescription]:
    """The keys in `wanted` of a group with these dynamic configs."""
    resolved = group_values(resolver.in_effect, values)
    for definition in _shown(group_configs(), values, wanted):
        own = values.get(definition.name)
        yield _described(
            definition,
            format_value(resolved[definition.name]),
            None if own is None else ConfigSource.GROUP_CONFIG,
            _group_synonyms(resolver.broker_configs, definition),
        )


def describe_client_metrics(values: Mapping[str, str], wanted: Container[str]) -> Iterable[ConfigDescription]:
    """The keys in `wanted` of a client metrics subscription with these configs."""
    for definition in _shown(client_metrics_configs(), values, wanted):
        own = values.get(definition.name)
        value = definition.default_value if own is None else definition.parse(own)
        yield _described(
            definition, format_value(value), None if own is None else ConfigSource.CLIENT_METRICS_CONFIG, ()
        )


def describe_broker(resolver: ConfigResolver, wanted: Container[str]) -> Iterable[ConfigDescription]:
    """The keys in `wanted` of this broker: those that are set and all that Kafka shows."""
    table = broker_configs()
    for name in sorted({*table, *resolver.in_effect}):
        is_set = name in resolver.in_effect
        if name not in wanted or (name in table and table[name].is_internal and not is_set):
            continue
        yield _described_broker_key(resolver.broker_configs, name, _broker_value(resolver, name))


def describe_broker_defaults(resolver: ConfigResolver, wanted: Container[str]) -> Iterable[ConfigDescription]:
    """The keys in `wanted` that are set for all brokers, as they were written."""
    configs = BrokerConfigs(dynamic_default=resolver.broker_configs.dynamic_default)
    for name, value in sorted(configs.dynamic_default.items()):
        if name in wanted:
            synonyms = tuple(
                synonym
                for synonym in configs.synonyms(name)
                if synonym.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
            )
            yield _described_broker_key(configs, name, value, synonyms)


def describe_loggers(levels: Mapping[str, str], wanted: Container[str]) -> Iterable[ConfigDescription]:
    """The loggers in `wanted`, with their levels (KIP-412)."""
    for name, level in levels.items():
        if name in wanted:
            yield ConfigDescription(
                name=name,
                value=level,
                source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
                type=ConfigType.UNKNOWN,
                is_sensitive=False,
                is_read_only=False,
                synonyms=(),
            )


def _group_synonyms(configs: BrokerConfigs, definition: ConfigDefinition) -> tuple[ConfigSynonym, ...]:
    if definition.synonyms:
        return configs.synonyms(definition.synonyms[0].name)
    return (ConfigSynonym(name=definition.name, value=definition.default, source=ConfigSource.DEFAULT_CONFIG),)


def _broker_value(resolver: ConfigResolver, name: str) -> str | None:
    definition = broker_configs().get(name)
    if definition is None:
        return resolver.in_effect[name]
    text = resolver.in_effect.get(name)
    if text is None:
        text = resolver.broker_configs.default(name)
    return None if text is None else format_value(definition.parse(text))


def _described_broker_key(
    configs: BrokerConfigs, name: str, value: str | None, synonyms: tuple[ConfigSynonym, ...] | None = None
) -> ConfigDescription:
    definition = broker_definition(name)
    # A listener's own key counts as read-only in Kafka, though it can be changed.
    is_dynamic = definition is not None and definition.name == name and not definition.is_read_only
    is_secret = is_hidden(name)
    found = configs.synonyms(name, is_hidden=is_secret) if synonyms is None else synonyms
    return ConfigDescription(
        name=name,
        value=None if is_secret else value,
        source=found[0].source if found else ConfigSource.DEFAULT_CONFIG,
        type=ConfigType.UNKNOWN if definition is None else definition.type,
        is_sensitive=is_secret,
        is_read_only=not is_dynamic,
        synonyms=found,
    )


def _described(
    definition: ConfigDefinition,
    value: str | None,
    own_source: ConfigSource | None,
    inherited: tuple[ConfigSynonym, ...],
) -> ConfigDescription:
    own = () if own_source is None else (ConfigSynonym(name=definition.name, value=value, source=own_source),)
    synonyms = (*own, *inherited)
    return ConfigDescription(
        name=definition.name,
        value=value,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        type=definition.type,
        is_sensitive=definition.is_sensitive,
        is_read_only=False,
        synonyms=synonyms,
    )


def _shown(table: ConfigTable, values: Mapping[str, str], wanted: Container[str]) -> Iterable[ConfigDefinition]:
    for definition in table.values():
        if definition.name in wanted and (not definition.is_internal or definition.name in values):
            yield definition
