"""Variables of configuration providers (KIP-297, KIP-421), by Kafka's rules but for those that cannot be resolved."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from penstock.protocol.config_providers import ResolvedProperties, resolve
from penstock.protocol.errors import ConfigError

_PACKAGE = "org.apache.kafka.common.config.provider"
_PROVIDERS = {
    "config.providers": "file, env,dir",
    "config.providers.file.class": f"{_PACKAGE}.FileConfigProvider",
    "config.providers.env.class": f"{_PACKAGE}.EnvVarConfigProvider",
    "config.providers.dir.class": f"{_PACKAGE}.DirectoryConfigProvider",
}


_ENVIRONMENT = {"SECRET": "of-env", "OTHER": "${env:SECRET}"}


@dataclass
class _Files:
    """A disk of a few files."""

    files: Mapping[str, bytes] = field(
        default_factory=lambda: {
            "/run/secrets/tls.properties": b"key.password=of-file\na:b=colon\na\\:b=escaped\n",
            "/run/secrets/password": b"of-dir\n",
            "/run/secrets/latin": b"\xff",
            "/run/secrets/torn": b"a=\\u12",
            "/run/secretsandmore": b"a=1",
        }
    )
    reads: list[str] = field(default_factory=list)

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.files[path]

    def exists(self, path: str) -> bool:
        return path in self.files or self.is_directory(path)

    def is_directory(self, path: str) -> bool:
        return any(name.startswith(f"{path.rstrip('/')}/") for name in self.files)


def _resolve(more: Mapping[str, str]) -> ResolvedProperties:
    return resolve({**_PROVIDERS, **more}, files=_Files(), environment=_ENVIRONMENT)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${file:/run/secrets/tls.properties:key.password}", "of-file"),
        ("${file:/run/secrets/tls.properties:a:b}", "escaped"),
        ("${env:SECRET}", "of-env"),
        ("${dir:/run/secrets:password}", "of-dir\n"),
        ("x${env:SECRET}y${env:SECRET}z", "xof-envyof-envz"),
        # What a provider gives is not resolved again.
        ("${env:OTHER}", "${env:SECRET}"),
        # No provider has these names.
        ("${vault:a:b}", "${vault:a:b}"),
        ("${vault:a:b}${env:SECRET}", "${vault:a:b}of-env"),
        ("${SECRET}", "${SECRET}"),
        ("$env:SECRET", "$env:SECRET"),
        ("", ""),
    ],
)
def test_variables_are_replaced(text: str, value: str) -> None:
    resolved = _resolve({"a": text})
    assert resolved.values["a"] == value
    assert resolved.variables == ({} if value == text else {"a": text})
    assert value not in repr(resolved) or value in text


def test_without_providers_nothing_is_a_variable() -> None:
    assert resolve({"a": "${env:SECRET}"}, files=_Files(), environment=_ENVIRONMENT).values == {"a": "${env:SECRET}"}


def test_a_file_is_read_once() -> None:
    files = _Files()
    one = "${file:/run/secrets/tls.properties:key.password}"
    resolve({**_PROVIDERS, "a": one, "b": one}, files=files, environment={})
    assert files.reads == ["/run/secrets/tls.properties"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("${file:/run/secrets/tls.properties:none}", "/run/secrets/tls.properties has no key none"),
        ("${file:key}", "it names no path"),
        ("${file:/none:key}", "/none cannot be read: No such file or directory"),
        ("${file:/run/secrets/latin:key}", "/run/secrets/latin is not UTF-8"),
        (
            "${file:/run/secrets/torn:key}",
            r"/run/secrets/torn is no file of properties: Line 1: \\u must be followed by four hexadecimal digits",
        ),
        ("${env:NONE}", "NONE is not set in the environment"),
        ("${env:a:SECRET}", "variables of the environment have no path"),
        ("${dir:/run/none:password}", "/run/none is no folder"),
        ("${dir:/run/secrets:none}", "/run/secrets/none cannot be read: No such file or directory"),
        ("${dir:/run/secrets:../secretsandmore}", r"'\.\./secretsandmore' is no name of a file"),
        ("${dir:/run/secrets:}", "'' is no name of a file"),
    ],
)
def test_what_cannot_be_resolved_is_an_error_that_names_the_key(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"^a has the variable .*, but {sentence}.$") as raised:
        _resolve({"a": text})
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("/run/secrets/tls.properties", True),
        ("/run/./secrets//tls.properties", True),
        ("/etc/../run/secrets/tls.properties", True),
        ("/run/secretsandmore", False),
        ("/run/secrets/../secretsandmore", False),
        ("run/secrets/tls.properties", False),
    ],
)
def test_allowed_paths(path: str, is_allowed: bool) -> None:
    more = {"config.providers.file.param.allowed.paths": "/run/secrets/", "a": f"${{file:{path}:key.password}}"}
    if is_allowed:
        assert _resolve(more).values["a"] == "of-file"
    else:
        with pytest.raises(ConfigError, match=f"config.providers.file.param.allowed.paths does not allow {path}"):
            _resolve(more)


def test_names_of_the_environment_are_allowed_as_a_whole() -> None:
    pattern = {"config.providers.env.param.allowlist.pattern": "SECR"}
    with pytest.raises(ConfigError, match=r"allowlist\.pattern does not allow SECRET"):
        _resolve({**pattern, "a": "${env:SECRET}"})
    assert (
        _resolve({"config.providers.env.param.allowlist.pattern": "S.*", "a": "${env:SECRET}"}).values["a"] == "of-env"
    )


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"config.providers": "none"}, "config.providers names none, so config.providers.none.class must be set."),
        (
            {"config.providers.file.class": "com.example.Vault"},
            "config.providers.file.class is com.example.Vault, but can only be one of FileConfigProvider, "
            f"DirectoryConfigProvider, EnvVarConfigProvider of {_PACKAGE}: no other class can be loaded here.",
        ),
        (
            {"config.providers.dir.param.allowed.paths": "run"},
            "config.providers.dir.param.allowed.paths must hold absolute paths, but one is run.",
        ),
        (
            {"config.providers.dir.param.allowed.paths": "/none"},
            "config.providers.dir.param.allowed.paths names /none, which does not exist.",
        ),
        (
            {"config.providers.env.param.allowlist.pattern": "("},
            "config.providers.env.param.allowlist.pattern is no regular expression: missing ), unterminated "
            "subpattern at position 0.",
        ),
    ],
)
def test_providers_that_cannot_be(more: Mapping[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        _resolve(more)
    assert str(raised.value) == sentence
