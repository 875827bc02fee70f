"""The keys of each kind of resource, as Apache Kafka 4.3.1 defines them, with the ways to ask about them.

The tables come with the package as data (see NOTICE). They are read when first asked for; the documentation, which is
twice as large, only for a DescribeConfigs that wants it, and it is not kept.
"""

import difflib
import json
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from ...protocol.errors import ConfigError
from .definition import ConfigDefinition, ConfigType, ConfigValue, Synonym, UpdateMode
from .own_keys import OWN_KEYS
from .validators import check_of

KAFKA_RELEASE: Final = "4.3.1"
_UPDATE_MODES: Final = {
    None: UpdateMode.READ_ONLY,
    "per-broker": UpdateMode.PER_BROKER,
    "cluster-wide": UpdateMode.CLUSTER_WIDE,
}


class ConfigTable(Mapping[str, ConfigDefinition]):
    """Definitions by key, in alphabetical order; each is made when first looked at."""

    def __init__(self, section: str, descriptions: Mapping[str, Mapping[str, Any]]) -> None:
        self._section = section
        self._descriptions = descriptions
        self._definitions: dict[str, ConfigDefinition] = {}

    def __getitem__(self, name: str) -> ConfigDefinition:
        definition = self._definitions.get(name)
        if definition is None:
            definition = self._definitions[name] = _definition(name, self._descriptions[name])
        return definition

    def __iter__(self) -> Iterator[str]:
        return iter(self._descriptions)

    def __len__(self) -> int:
        return len(self._descriptions)

    def parse(self, name: str, text: str | None) -> ConfigValue:
        """The value of a known key. Raises ConfigError with Kafka's sentence; KeyError for an unknown key."""
        return self[name].parse(text)

    def value(self, values: Mapping[str, str], name: str) -> ConfigValue:
        """The value in effect: what `values` says, else the default. Raises ConfigError."""
        definition = self[name]
        if name in values:
            return definition.parse(values[name])
        if definition.is_required:
            raise ConfigError(f'Missing required configuration "{name}" which has no default value.')
        return definition.default_value

    def nearest(self, name: str) -> str | None:
        """The key that `name` was most likely meant to be, or None when none is near."""
        matches = difflib.get_close_matches(name.strip().lower().replace("_", "."), self._descriptions, n=1, cutoff=0.6)
        return matches[0] if matches else None

    def documentation(self) -> Mapping[str, str]:
        """Kafka's text on every key, as HTML."""
        documentation: dict[str, dict[str, str]] = _load(f"kafka-{KAFKA_RELEASE}-documentation.json")
        return documentation[self._section]


@cache
def broker_configs() -> ConfigTable:
    """The keys of server.properties."""
    return ConfigTable("broker", _tables()["broker"])


@cache
def dynamic_quota_configs() -> ConfigTable:
    """Broker keys that exist only as dynamic configs, never in server.properties: the replication quotas."""
    return ConfigTable("broker-dynamic", _tables()["broker-dynamic"])


@cache
def own_configs() -> ConfigTable:
    """Broker keys that Apache Kafka does not have, and that exist only as dynamic configs."""
    return ConfigTable("penstock", OWN_KEYS)


def dynamic_only(name: str) -> ConfigDefinition | None:
    """Return the definition of a broker key that server.properties cannot have."""
    return dynamic_quota_configs().get(name) or own_configs().get(name)


@cache
def topic_configs() -> ConfigTable:
    return ConfigTable("topic", _tables()["topic"])


@cache
def group_configs() -> ConfigTable:
    return ConfigTable("group", _tables()["group"])


@cache
def client_metrics_configs() -> ConfigTable:
    return ConfigTable("client-metrics", _tables()["client-metrics"])


@cache
def _tables() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]] = _load(f"kafka-{KAFKA_RELEASE}.json")
    return tables


def _load(name: str) -> Any:
    data = pkgutil.get_data(__package__, name)
    assert data is not None, f"{name} is missing from the package"
    return json.loads(data)


def _definition(name: str, description: Mapping[str, Any]) -> ConfigDefinition:
    validator = description.get("validator")
    return ConfigDefinition(
        name=name,
        type=ConfigType[description["type"]],
        default=description.get("default"),
        is_required="default" not in description,
        check=check_of(validator),
        drops_duplicates=validator is not None and validator["kind"] == "ValidList",
        valid_values="" if validator is None else validator["text"],
        importance=description["importance"],
        is_internal=description.get("internal", False),
        update_mode=_UPDATE_MODES[description.get("update")],
        synonyms=tuple(
            Synonym(name=synonym) if isinstance(synonym, str) else Synonym(name=synonym[0], factor=synonym[1])
            for synonym in description.get("synonyms", ())
        ),
    )
