"""Which value a key has and why: what DescribeConfigs and CreateTopics tell, and what the broker obeys.

A broker key is looked for as a dynamic config of the broker, then of all brokers, then in server.properties, then
there is its default (KIP-226). A topic or group key is looked for in its own dynamic configs first, then as the broker
key that is its synonym.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import Final

from msgspec import Struct

from .definition import ConfigDefinition, ConfigValue, format_value
from .table import ConfigTable, broker_configs, dynamic_only, group_configs, topic_configs

# `listener.name.<listener>.<key>` is the key for one listener; these may have a SASL mechanism between the two.
LISTENER_KEY = re.compile(r"listener\.name\.[^.]*\.(.*)")
_MECHANISM_KEYS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


class ConfigSource(IntEnum):
    """Where a value comes from, by Kafka's numbers."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigSynonym(Struct, frozen=True, kw_only=True):
    """One place where a value was found, with the name that it has there."""

    name: str
    value: str | None
    source: ConfigSource


_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfigs:
    """All that is said about one broker, as text. `own_defaults` are those that differ from Kafka's.

    Passwords are among the others, which are not shown.
    """

    dynamic: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)
    dynamic_default: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)
    static: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)
    own_defaults: Mapping[str, str] = field(default_factory=lambda: _NOTHING)

    def overlaid(self) -> dict[str, str]:
        """What is set, strongest source first; setting a key dynamically hides its weaker synonyms elsewhere.

        So a dynamic log.retention.hours counts although server.properties has log.retention.ms.
        """
        result = dict(self.static)
        for values in (self.dynamic_default, self.dynamic):
            for name, value in values.items():
                for synonym in _own_synonyms(name):
                    result.pop(synonym, None)
                result[name] = value
        return result

    def default(self, name: str) -> str | None:
        definition = broker_configs().get(name)
        return self.own_defaults.get(name, None if definition is None else definition.default)

    def synonyms(self, name: str, *, is_hidden: bool | None = None) -> tuple[ConfigSynonym, ...]:
        """Every value said about `name` or a synonym, the one that counts first.

        Values that are hidden are None; whether they are says `is_sensitive`, unless the caller knows the key better.

        As in Kafka, what comes before the first value of `name` itself is left out: log.retention.hours is no source
        of log.retention.ms as long as the latter is set nowhere.
        """
        names = broker_synonyms(name)
        if is_hidden is None:
            is_hidden = is_sensitive(name)
        found = [
            ConfigSynonym(name=synonym, value=None if is_hidden else values[synonym], source=source)
            for values, source in (
                (self.dynamic, ConfigSource.DYNAMIC_BROKER_CONFIG),
                (self.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
                (self.static, ConfigSource.STATIC_BROKER_CONFIG),
            )
            for synonym in names
            if synonym in values
        ]
        for synonym in names:
            default = self.default(synonym)
            if default is not None:
                value = None if is_hidden else default
                found.append(ConfigSynonym(name=synonym, value=value, source=ConfigSource.DEFAULT_CONFIG))
        start = next((index for index, synonym in enumerate(found) if synonym.name == name), len(found))
        return tuple(found[start:])


class TopicConfig(Struct, frozen=True, kw_only=True):
    """The value of one topic key, and the source that gave it."""

    definition: ConfigDefinition
    value: str | None
    source: ConfigSource


def resolve_topic(broker: BrokerConfigs, values: Mapping[str, str]) -> Iterator[TopicConfig]:
    """Every key that a topic with these dynamic configs shows, in alphabetical order, with the source that decides.

    Unlike DescribeConfigs, CreateTopics is told the truth about hours and minutes: their value times the unit.
    """
    places = (
        (broker.dynamic, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (broker.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (broker.static, ConfigSource.STATIC_BROKER_CONFIG),
    )
    for definition in topic_configs().values():
        if definition.is_internal and definition.name not in values:
            continue
        value, source = definition.default, ConfigSource.DEFAULT_CONFIG
        if definition.name in values:
            value, source = values[definition.name], ConfigSource.DYNAMIC_TOPIC_CONFIG
        else:
            for place, place_source in places:
                text = _first(definition, place)
                if text is not None:
                    value, source = text, place_source
                    break
        yield TopicConfig(definition=definition, value=value, source=source)


def defaults_of(table: ConfigTable, in_effect: Mapping[str, str]) -> dict[str, ConfigValue]:
    """The values of keys that are not set for the topic or group itself, from what is `overlaid` for the broker.

    Raises ConfigError when a broker key that counts cannot be read.
    """
    result: dict[str, ConfigValue] = {}
    for definition in table.values():
        text = _first(definition, in_effect)
        result[definition.name] = definition.default_value if text is None else definition.parse(text)
    return result


def topic_values(in_effect: Mapping[str, str], values: Mapping[str, str]) -> dict[str, ConfigValue]:
    """The value of every topic key. Raises ConfigError."""
    return {**defaults_of(topic_configs(), in_effect), **parsed(topic_configs(), values)}


def group_values(in_effect: Mapping[str, str], values: Mapping[str, str]) -> dict[str, ConfigValue]:
    """The value of every group key. Raises ConfigError."""
    return {**defaults_of(group_configs(), in_effect), **parsed(group_configs(), values)}


def parsed(table: ConfigTable, values: Mapping[str, str]) -> dict[str, ConfigValue]:
    """The values of the keys that the table has. Raises ConfigError."""
    return {name: table.parse(name, text) for name, text in values.items() if name in table}


def broker_synonyms(name: str) -> tuple[str, ...]:
    """The names under which the value of a broker key may stand, the strongest first; its own is among them."""
    listener_key = LISTENER_KEY.fullmatch(name)
    if listener_key is None:
        return _own_synonyms(name)
    base = listener_key[1]
    return name, next((key for key in _MECHANISM_KEYS if base.endswith(key)), base)


@cache
def _own_synonyms(name: str) -> tuple[str, ...]:
    definition = broker_configs().get(name)
    return tuple(synonym.name for synonym in definition.synonyms) if definition and definition.synonyms else (name,)


def broker_definition(name: str) -> ConfigDefinition | None:
    """The definition of a broker key, also one of a listener and one that is only dynamic; None for an unknown key."""
    for candidate in (name, *broker_synonyms(name)):
        definition = broker_configs().get(candidate) or dynamic_only(candidate)
        if definition is not None:
            return definition
    return None


def is_sensitive(name: str) -> bool:
    """Whether the value of a broker key must not be shown. What is not known might be a password."""
    definition = broker_definition(name)
    return definition is None or definition.is_sensitive


def _first(definition: ConfigDefinition, values: Mapping[str, str]) -> str | None:
    """The value of the first synonym that `values` has, in the unit of `definition`."""
    for synonym in definition.synonyms:
        if synonym.name in values:
            text = values[synonym.name]
            if synonym.factor == 1:
                return text
            value = broker_configs().parse(synonym.name, text)
            assert isinstance(value, int)
            # Kafka's -1 hours are no limit, not -3600000 ms.
            return format_value(value if value < 0 else value * synonym.factor)
    return None
