"""Properties as a node is given them, read as the type of each key."""

from collections.abc import Mapping
from typing import Final

from ...protocol.errors import ConfigError
from ...quorum.configs.definition import ConfigValue, parse
from ...quorum.configs.table import KAFKA_RELEASE, broker_configs
from .penstock_keys import PENSTOCK_KEYS

# Keys of plug-ins and of single listeners: what follows the prefix is theirs.
_OPEN_PREFIXES: Final = ("listener.name.", "config.providers.", "rsm.config.", "rlmm.config.")
# To start without what this asks for would leave a door open, so it is refused instead of ignored.
_REFUSED_KEYS: Final = ("client.quota.callback.class",)
# Kafka's own authorizer reads them: no table has them (`authorizer_config.py`).
_AUTHORIZER_KEYS: Final = ("super.users", "allow.everyone.if.no.acl.found")


class PropertyValues:
    """Typed reading of properties; remembers which keys were of use."""

    def __init__(self, properties: Mapping[str, str], defaults: Mapping[str, str]) -> None:
        """`defaults` are those that are not Kafka's. ConfigError for an unknown key, and for an invalid value."""
        self.properties = properties
        self._defaults = defaults
        self.used: set[str] = set()
        table = broker_configs()
        for name, text in properties.items():
            if name in _REFUSED_KEYS and text.strip():
                raise ConfigError(f"{name} is set, but no class can be loaded here; remove it to start without.")
            if name in table:
                table.parse(name, text)
            elif name in PENSTOCK_KEYS:
                parse(name, text, PENSTOCK_KEYS[name].type)
            elif name not in _AUTHORIZER_KEYS and not name.startswith(_OPEN_PREFIXES):
                nearest = table.nearest(name)
                hint = f"; did you mean {nearest}?" if nearest else "."
                raise ConfigError(f"{name} is not a property of Apache Kafka {KAFKA_RELEASE}{hint}")

    def is_set(self, name: str) -> bool:
        return name in self.properties

    def value(self, name: str) -> ConfigValue:
        self.used.add(name)
        if name in PENSTOCK_KEYS:
            key = PENSTOCK_KEYS[name]
            return parse(name, self.properties.get(name, key.default), key.type)
        table = broker_configs()
        if name not in self.properties and name in self._defaults:
            return parse(name, self._defaults[name], table[name].type)
        return table.value(self.properties, name)

    def integer(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int)
        return value

    def number(self, name: str) -> float:
        value = self.value(name)
        assert isinstance(value, float)
        return value

    def boolean(self, name: str) -> bool:
        return self.value(name) is True

    def text_or_none(self, name: str) -> str | None:
        value = self.value(name)
        return value if isinstance(value, str) else None

    def strings(self, name: str) -> tuple[str, ...]:
        value = self.value(name)
        return value if isinstance(value, tuple) else ()
