"""Properties of one listener: `listener.name.<listener>.<key>` over `<key>` (KIP-103), and of one SASL mechanism on it:
`listener.name.<listener>.<mechanism>.<key>` over both (KIP-86)."""

from collections.abc import Mapping

from ...protocol.errors import ConfigError
from ...quorum.configs.definition import ConfigValue
from ...quorum.configs.table import broker_configs


class ListenerKeys:
    """Reads them. A ConfigError names the key that was set."""

    def __init__(self, properties: Mapping[str, str], listener_name: str) -> None:
        self.listener_name = listener_name
        self._properties = properties
        self._prefix = f"listener.name.{listener_name.lower()}."

    def key(self, base: str, mechanism: str | None = None) -> str:
        """The name under which the property was set, or would be for all listeners."""
        own = (self.mechanism_key(base, mechanism),) if mechanism else ()
        return next((name for name in (*own, self._prefix + base) if name in self._properties), base)

    def mechanism_key(self, base: str, mechanism: str) -> str:
        return f"{self._prefix}{mechanism.lower()}.{base}"

    def is_set(self, base: str) -> bool:
        """Whether it was, for this listener or for all."""
        return self.key(base) in self._properties

    def value(self, base: str, mechanism: str | None = None) -> ConfigValue:
        definition = broker_configs()[base]
        key = self.key(base, mechanism)
        if key not in self._properties:
            return definition.default_value
        try:
            return definition.parse(self._properties[key])
        except ConfigError as error:
            raise ConfigError(str(error).replace(base, key)) from error

    def text(self, base: str, mechanism: str | None = None) -> str | None:
        """None when it is not set, or blank."""
        value = self.value(base, mechanism)
        return value.strip() or None if isinstance(value, str) else None

    def integer(self, base: str, mechanism: str | None = None) -> int:
        value = self.value(base, mechanism)
        assert isinstance(value, int)
        return value

    def strings(self, base: str, mechanism: str | None = None) -> tuple[str, ...]:
        value = self.value(base, mechanism)
        return value if isinstance(value, tuple) else ()
