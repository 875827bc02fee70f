"""The limits of configuration values, made from the descriptions in the tables; sentences as in Apache Kafka."""

import re
from collections.abc import Callable, Mapping, Sequence

from ...protocol.errors import ConfigError
from .definition import ConfigValue, invalid_value, java_text

Check = Callable[[str, ConfigValue], None]
# A validator as the tables describe it: `kind` is Kafka's class, `text` how Kafka prints it, the rest its fields.
Description = Mapping[str, object]

_HOST_AND_PORT = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?[0-9a-zA-Z\-%._:]*\]?:[0-9]+")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_THROTTLED_REPLICA = re.compile(r"[0-9]+:[0-9]+")
_DURATION = re.compile(
    r"(?P<sign>[+-])?P(?:[+-]?[0-9]+D)?(?:T(?:[+-]?[0-9]+H)?(?:[+-]?[0-9]+M)?(?:[+-]?[0-9]+(?:\.[0-9]{0,9})?S)?)?",
    re.IGNORECASE,
)


def check_of(description: Description | None) -> Check:
    """The check that a description stands for. Raises KeyError for a kind that no table of this release has."""
    if description is None:
        return _anything
    values = description.get("values")
    choices = tuple(str(value) for value in values) if isinstance(values, Sequence) else ()
    match description["kind"]:
        case "Range":
            return _in_range(_number(description["min"]), _number(description["max"]))
        case "ValidString":
            return _one_of(choices)
        case "CaseInsensitiveValidString":
            return _one_of_any_case(choices)
        case "ValidList":
            return _list_of(choices, may_be_empty=description["empty"] is True, may_be_null=description["null"] is True)
        case "LambdaValidator":
            return _gzip_level
        case kind:
            return _NAMED[str(kind)]


def _number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) else None


def _anything(name: str, value: ConfigValue) -> None:
    """Every value of the type is good."""


def _in_range(least: float | None, most: float | None) -> Check:
    def check(name: str, value: ConfigValue) -> None:
        if value is None:
            raise invalid_value(name, None, "Value must be non-null")
        if isinstance(value, int | float):
            if least is not None and value < least:
                raise invalid_value(name, value, f"Value must be at least {java_text(least)}")
            if most is not None and value > most:
                raise invalid_value(name, value, f"Value must be no more than {java_text(most)}")

    return check


def _one_of(choices: tuple[str, ...]) -> Check:
    def check(name: str, value: ConfigValue) -> None:
        if value not in choices:
            raise invalid_value(name, value, f"String must be one of: {', '.join(choices)}")

    return check


def _one_of_any_case(choices: tuple[str, ...]) -> Check:
    def check(name: str, value: ConfigValue) -> None:
        if not isinstance(value, str) or value.upper() not in choices:
            raise invalid_value(name, value, f"String must be one of (case insensitive): {', '.join(choices)}")

    return check


def _list_of(choices: tuple[str, ...], *, may_be_empty: bool, may_be_null: bool) -> Check:
    one_of = _one_of(choices)

    def check(name: str, value: ConfigValue) -> None:
        if not isinstance(value, tuple):
            if not may_be_null:
                raise ConfigError(f"Configuration '{name}' values must not be null.")
            return
        if not value and not may_be_empty:
            valid = f"[{', '.join(choices)}]" if choices else "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {valid}")
        if len(set(value)) != len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        for item in value:
            if not item:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if choices:
                one_of(name, item)

    return check


def _gzip_level(name: str, value: ConfigValue) -> None:
    if value is None:
        raise invalid_value(name, None, "Value must be non-null")
    if value != -1 and not (isinstance(value, int) and 1 <= value <= 9):
        raise invalid_value(name, value, "Value must be between 1 and 9 or equal to -1")


def _not_empty(name: str, value: ConfigValue) -> None:
    if value is not None and not value:
        raise invalid_value(name, value, "String must be non-empty")


def _not_null(name: str, value: ConfigValue) -> None:
    if value is None:
        raise invalid_value(name, "null", "entry must be non null")


def _throttled_replicas(name: str, value: ConfigValue) -> None:
    # Java drops the empty texts at the end of a split, so "," holds nothing.
    if not isinstance(value, tuple) or value == ("*",) or not any(value):
        return
    if any(not _THROTTLED_REPLICA.fullmatch(item) for item in value):
        raise invalid_value(
            name,
            value,
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        )


def _voters(name: str, value: ConfigValue) -> None:
    if not isinstance(value, tuple):
        raise ConfigError(f"Invalid value null for configuration {name}")
    form = "Each entry should be in the form `{id}@{host}:{port}`."
    for entry in value:
        voter_id, at, address = entry.partition("@")
        if not at or not address or "@" in address:
            raise ConfigError(f"Invalid configuration value for {name}. {form}")
        if not _INTEGER.fullmatch(voter_id):
            raise ConfigError(f"Failed to parse voter ID as an integer from {voter_id}")
        if not _HOST_AND_PORT.fullmatch(address):
            raise ConfigError(f"Failed to parse host name from entry {entry} for the configuration {name}. {form}")


def _servers(name: str, value: ConfigValue) -> None:
    if not isinstance(value, tuple):
        raise ConfigError(f"Invalid value null for configuration {name}")
    for entry in value:
        if not _HOST_AND_PORT.fullmatch(entry):
            raise ConfigError(
                f"Failed to parse host name from {entry} for the configuration {name}. "
                'Each entry should be in the form "{host}:{port}"'
            )


def _offset_reset(name: str, value: ConfigValue) -> None:
    text = java_text(value)
    kind, colon, duration = text.partition(":")
    if text in {"earliest", "latest"}:
        return
    if kind == "by_duration" and colon:
        match = _DURATION.fullmatch(duration)
        if match and duration[-1].upper() not in "PT" and "-" not in duration:
            return
    raise invalid_value(
        name,
        value,
        f"Invalid value `{text}` for configuration {name}. The value must be either 'earliest', 'latest' or of the "
        "format 'by_duration:<PnDTnHnMn.nS>'.",
    )


_NAMED: Mapping[str, Check] = {
    "NonEmptyString": _not_empty,
    "NonNullValidator": _not_null,
    "ThrottledReplicaListValidator": _throttled_replicas,
    "ControllerQuorumVotersValidator": _voters,
    "ControllerQuorumBootstrapServersValidator": _servers,
    "Validator": _offset_reset,
}
