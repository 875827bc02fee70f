"""A job's config from a file in TOML and from assignments."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from .config import JobConfig

C = TypeVar("C", bound=JobConfig)


class ConfigError(Exception):
    """A config cannot be used; the message says what was expected, what was found and where. No values of properties
    of clients are in it."""


def text_of(file: Path | None) -> str:
    """What is in a file of options, nothing without one. Raises ConfigError."""
    try:
        return "" if file is None else file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8: {error}.") from error


def read_config(config_type: type[C], *, text: str, assignments: Mapping[str, str], where: str = "the config") -> C:
    """`text` is TOML, with one field a key; `assignments`, which win, have dotted names: `kafka.security.protocol`.

    A field that maps names to texts takes tables within, whose names are joined by dots; a field with fields of its own
    is a table of them, `table.location`. Raises ConfigError.
    """
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not TOML: {error}.") from error
    hints = get_type_hints(config_type)
    _flatten(values, hints)
    for name, assigned in assignments.items():
        _assign(values, hints, name, assigned)
    for name in values:
        if name not in hints:
            nearest = difflib.get_close_matches(name, hints, n=1)
            hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
            raise ConfigError(f"{where}: this job has no option {name!r}.{hint}")
    try:
        return msgspec.convert(values, type=config_type, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {_sentence(str(error))}") from error


def _flatten(values: dict[str, Any], hints: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if not isinstance(value, dict):
            continue
        if get_origin(hints.get(name)) is dict:
            values[name] = dict(_flat(value))
        elif (inner := _fields_of(hints.get(name))) is not None:
            _flatten(value, get_type_hints(inner))


def _flat(table: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in table.items():
        found += _flat(value, f"{before}{name}.") if isinstance(value, dict) else [(f"{before}{name}", _text(value))]
    return found


def _text(value: Any) -> Any:
    """Properties are texts, whatever TOML made of them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _assign(values: dict[str, Any], hints: Mapping[str, Any], name: str, assigned: str) -> None:
    field, dot, key = name.partition(".")
    inner = _fields_of(hints.get(field)) if dot else None
    if inner is not None:
        within = values[field] = _table(values, field)
        _assign(within, get_type_hints(inner), key, assigned)
    elif dot and get_origin(hints.get(field)) is dict:
        values[field] = {**_table(values, field), key: assigned}
    elif get_origin(hints.get(name)) is tuple:
        values[name] = [part.strip() for part in assigned.split(",") if part.strip()]
    else:
        values[name] = assigned


def _table(values: Mapping[str, Any], field: str) -> dict[str, Any]:
    found = values.get(field, {})
    if not isinstance(found, dict):
        raise ConfigError(f"`{field}` is a table, `[{field}]` in the file, and was given one value.")
    return dict(found)


def _fields_of(hint: Any) -> type[msgspec.Struct] | None:
    """What has fields of its own, also where it may be left out."""
    kinds = (one for one in (hint, *get_args(hint)) if isinstance(one, type))
    return next((one for one in kinds if issubclass(one, msgspec.Struct)), None)


def _sentence(message: str) -> str:
    """msgspec's message, with the field in front: `Expected `int`, got `str` - at `$.x``."""
    what, at, where = message.partition(" - at `$.")
    return f"`{where.rstrip('`')}`: {what[0].lower()}{what[1:]}." if at else f"{what}."
