"""Variables in values of properties, `${provider:path:key}`, and the providers that resolve them (KIP-297, KIP-421).

Kafka: `ConfigTransformer`, `FileConfigProvider`, `DirectoryConfigProvider`, `EnvVarConfigProvider`, `AllowedPaths`.

    config.providers=file,env,dir
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/run/secrets,/etc/penstock
    ssl.key.password=${file:/run/secrets/tls.properties:key.password}
    cluster.secret=${env:CLUSTER_SECRET}
    sasl.password=${dir:/run/secrets:password}

A variable of a provider that is not configured stays as it is, as in Kafka. One that a configured provider cannot
resolve is an error: Kafka would take the text of the variable itself for the password. What a provider gives is not
looked through for variables again. Errors name keys, paths and variables, never values.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

from .errors import ConfigError
from .properties_text import properties_of

CONFIG_PROVIDERS: Final = "config.providers"
ALLOWED_PATHS: Final = "allowed.paths"
ALLOWLIST_PATTERN: Final = "allowlist.pattern"
_CLASS_PREFIX: Final = "org.apache.kafka.common.config.provider."
_FILE: Final = f"{_CLASS_PREFIX}FileConfigProvider"
_DIRECTORY: Final = f"{_CLASS_PREFIX}DirectoryConfigProvider"
_ENVIRONMENT: Final = f"{_CLASS_PREFIX}EnvVarConfigProvider"
# The path is optional; a key may have colons in it, a path not.
_VARIABLE = re.compile(r"\$\{(?P<provider>[^}:]*):(?:(?P<path>[^}:]*):)?(?P<key>[^}]*)\}")


class ProviderFiles(Protocol):
    """The disk where providers look. Failures are OSError."""

    def read(self, path: str) -> bytes: ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedProperties:
    """Properties whose variables have been resolved. Values are not shown."""

    values: Mapping[str, str] = field(repr=False)
    # By key: the text that a provider resolved, with its variables, which may be shown where the value may not.
    variables: Mapping[str, str]


def resolve(
    properties: Mapping[str, str], *, files: ProviderFiles, environment: Mapping[str, str]
) -> ResolvedProperties:
    """Raises ConfigError: a provider that is not one of the three, or a variable that one of them cannot resolve."""
    providers = _providers(properties, files, environment)
    values, variables = dict(properties), {}
    if providers:
        for name, text in properties.items():
            value = _replaced(name, text, providers)
            if value != text:
                values[name], variables[name] = value, text
    return ResolvedProperties(values=MappingProxyType(values), variables=MappingProxyType(variables))


class _UnresolvedError(Exception):
    """Why a variable has no value: the end of a sentence."""


# Path (empty without one) and key to value. Raises _UnresolvedError.
_Lookup = Callable[[str, str], str]


def _providers(
    properties: Mapping[str, str], files: ProviderFiles, environment: Mapping[str, str]
) -> Mapping[str, _Lookup]:
    providers: dict[str, _Lookup] = {}
    for name in filter(None, (name.strip() for name in properties.get(CONFIG_PROVIDERS, "").split(","))):
        class_key, prefix = f"{CONFIG_PROVIDERS}.{name}.class", f"{CONFIG_PROVIDERS}.{name}.param."
        if class_key not in properties:
            raise ConfigError(f"{CONFIG_PROVIDERS} names {name}, so {class_key} must be set.")
        match properties[class_key].strip():
            case c if c == _FILE:
                providers[name] = _FileLookup(_allowed_paths(properties, prefix, files), files).look_up
            case c if c == _DIRECTORY:
                providers[name] = _directory_lookup(_allowed_paths(properties, prefix, files), files)
            case c if c == _ENVIRONMENT:
                providers[name] = _environment_lookup(properties.get(prefix + ALLOWLIST_PATTERN), prefix, environment)
            case other:
                known = ", ".join(c.removeprefix(_CLASS_PREFIX) for c in (_FILE, _DIRECTORY, _ENVIRONMENT))
                raise ConfigError(
                    f"{class_key} is {other}, but can only be one of {known} of {_CLASS_PREFIX.rstrip('.')}: no other "
                    "class can be loaded here."
                )
    return providers


def _replaced(name: str, text: str, providers: Mapping[str, _Lookup]) -> str:
    def value(match: re.Match[str]) -> str:
        look_up = providers.get(match["provider"])
        if look_up is None:
            return match[0]
        try:
            return look_up(match["path"] or "", match["key"])
        except _UnresolvedError as error:
            raise ConfigError(f"{name} has the variable {match[0]}, but {error}.") from None

    return _VARIABLE.sub(value, text) if "${" in text else text


class _FileLookup:
    """A key of a file of properties. Each file is read once."""

    def __init__(self, allowed: "_AllowedPaths", files: ProviderFiles) -> None:
        self._allowed = allowed
        self._files = files
        self._read: dict[str, Mapping[str, str]] = {}

    def look_up(self, path: str, key: str) -> str:
        allowed_path = self._allowed.check(path)
        if allowed_path not in self._read:
            try:
                self._read[allowed_path] = properties_of(_read(allowed_path, self._files))
            except ConfigError as error:
                raise _UnresolvedError(f"{allowed_path} is no file of properties: {str(error).rstrip('.')}") from None
        if key not in self._read[allowed_path]:
            raise _UnresolvedError(f"{allowed_path} has no key {key}")
        return self._read[allowed_path][key]


def _directory_lookup(allowed: "_AllowedPaths", files: ProviderFiles) -> _Lookup:
    """The content of the file that has the key as its name."""

    def look_up(path: str, key: str) -> str:
        allowed_path = allowed.check(path)
        if not files.is_directory(allowed_path):
            raise _UnresolvedError(f"{allowed_path} is no folder")
        # A name, not a path: it must not lead out of the folder.
        if "/" in key or key in ("", ".", ".."):
            raise _UnresolvedError(f"{key!r} is no name of a file")
        return _read(f"{allowed_path}/{key}", files)

    return look_up


def _environment_lookup(pattern: str | None, prefix: str, environment: Mapping[str, str]) -> _Lookup:
    try:
        allowed = re.compile(".*" if pattern is None else pattern)
    except re.error as error:
        raise ConfigError(f"{prefix}{ALLOWLIST_PATTERN} is no regular expression: {error}.") from None

    def look_up(path: str, key: str) -> str:
        if path:
            raise _UnresolvedError("variables of the environment have no path")
        if not allowed.fullmatch(key):
            raise _UnresolvedError(f"{prefix}{ALLOWLIST_PATTERN} does not allow {key}")
        if key not in environment:
            raise _UnresolvedError(f"{key} is not set in the environment")
        return environment[key]

    return look_up


class _AllowedPaths:
    """Files in these folders, or all of them when none are named. By the text of a path, as in Kafka: a symbolic link
    in one of them may lead elsewhere.
    """

    def __init__(self, key: str, folders: tuple[tuple[str, ...], ...]) -> None:
        self._key = key
        self._folders = folders

    def check(self, path: str) -> str:
        """Raises _UnresolvedError."""
        if not path:
            raise _UnresolvedError("it names no path")
        if not self._folders:
            return path
        parts = _normalised(path)
        if not path.startswith("/") or not any(parts[: len(folder)] == folder for folder in self._folders):
            raise _UnresolvedError(f"{self._key} does not allow {path}")
        return f"/{'/'.join(parts)}"


def _allowed_paths(properties: Mapping[str, str], prefix: str, files: ProviderFiles) -> _AllowedPaths:
    key = prefix + ALLOWED_PATHS
    folders = []
    for path in filter(None, (path.strip() for path in properties.get(key, "").split(","))):
        if not path.startswith("/"):
            raise ConfigError(f"{key} must hold absolute paths, but one is {path}.")
        if not files.exists(path):
            raise ConfigError(f"{key} names {path}, which does not exist.")
        folders.append(_normalised(path))
    return _AllowedPaths(key, tuple(folders))


def _normalised(path: str) -> tuple[str, ...]:
    """The parts of an absolute path, without `.` and `..`."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def _read(path: str, files: ProviderFiles) -> str:
    try:
        return files.read(path).decode()
    except OSError as error:
        raise _UnresolvedError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise _UnresolvedError(f"{path} is not UTF-8") from None
