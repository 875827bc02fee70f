"""What one configuration key is: its type, default and limits, and how a text becomes a value.

Texts are read as Apache Kafka's `ConfigDef` reads them, and refused with its sentences: scripts look at them.
"""

import math
import re
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from msgspec import Struct

from ...protocol.errors import ConfigError

ConfigValue = bool | int | float | str | tuple[str, ...] | None

# What a boolean, a comma or a number looks like to Java: `\s` there is ASCII, and so are digits for this purpose.
_COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)", re.ASCII)
_BLANKS: Final = "".join(map(chr, range(33)))


class ConfigType(IntEnum):
    """Numbers as in DescribeConfigs responses (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class UpdateMode(IntEnum):
    """Who may change a broker key while the broker runs (KIP-226)."""

    READ_ONLY = 0
    PER_BROKER = 1
    CLUSTER_WIDE = 2


class Synonym(Struct, frozen=True, kw_only=True):
    """A broker key that gives a topic or group key its default; its value times `factor` is the other's value."""

    name: str
    factor: int = 1


class ConfigDefinition(Struct, frozen=True, kw_only=True):
    """One key.

    `default` is a text as a properties file would hold it, or None for null; a key that `is_required` has none. A list
    that `drops_duplicates` keeps the first of equal items (KIP-1161).
    `synonyms` of a broker key are the names for the same thing, the strongest first, itself among them; those of a
    topic or group key are the broker keys it takes its default from, the strongest first.
    """

    name: str
    type: ConfigType
    default: str | None
    is_required: bool
    check: Callable[[str, ConfigValue], None]
    drops_duplicates: bool
    valid_values: str
    importance: str
    is_internal: bool
    update_mode: UpdateMode
    synonyms: tuple[Synonym, ...]

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def is_read_only(self) -> bool:
        return self.update_mode is UpdateMode.READ_ONLY

    def parse(self, text: str | None) -> ConfigValue:
        """The value that `text` stands for.

        Raises ConfigError, with Kafka's sentence, when it is not of the type or outside the limits.
        """
        value = None if text is None else parse(self.name, text, self.type)
        if self.drops_duplicates and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))
        self.check(self.name, value)
        return value

    @property
    def default_value(self) -> ConfigValue:
        return None if self.default is None else parse(self.name, self.default, self.type)


def invalid_value(name: str, value: ConfigValue, reason: str) -> ConfigError:
    """Kafka's sentence for a value that cannot be."""
    return ConfigError(f"Invalid value {java_text(value)} for configuration {name}: {reason}")


def parse(name: str, text: str, config_type: ConfigType) -> ConfigValue:
    """Reads a text by its type. Raises ConfigError."""
    trimmed = text.strip(_BLANKS)
    match config_type:
        case ConfigType.BOOLEAN:
            if trimmed.lower() not in {"true", "false"}:
                raise invalid_value(name, text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            bits = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}[config_type]
            number = int(trimmed) if len(trimmed) < 32 and _INTEGER.fullmatch(trimmed) else None
            if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
                raise invalid_value(name, text, f"Not a number of type {config_type.name}")
            return number
        case ConfigType.DOUBLE:
            if not _DOUBLE.fullmatch(trimmed):
                raise invalid_value(name, text, f"Not a number of type {config_type.name}")
            return float(trimmed.rstrip("fFdD") if trimmed[-1] in "fFdD" and trimmed[0] != "N" else trimmed)
        case ConfigType.LIST:
            return tuple(_COMMA.split(trimmed)) if trimmed else ()
        case ConfigType.CLASS:
            if trimmed not in BUILT_IN_CLASSES:
                raise invalid_value(name, text, f"Class {text} could not be found.")
            return trimmed
        case ConfigType.STRING | ConfigType.PASSWORD | ConfigType.UNKNOWN:
            return trimmed


def format_value(value: ConfigValue) -> str | None:
    """The text of a value as DescribeConfigs shows it."""
    if isinstance(value, tuple):
        return ",".join(value)
    return None if value is None else java_text(value)


def java_text(value: ConfigValue) -> str:
    """How Java prints the value: `true`, `[a, b]`, `1.0E10`, `null`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case tuple():
            return f"[{', '.join(value)}]"
        case float():
            return _java_double(value)
        case _:
            return str(value)


def _java_double(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, exponent = next(text for text in (f"{value:.{n}e}" for n in range(17)) if float(text) == value).split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


# Java classes of Apache Kafka that a key of type CLASS may name. Classes of others cannot run here.
BUILT_IN_CLASSES: Final = frozenset(
    {
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator",
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
    }
)
