"""The properties of a command: `--command-config FILE` and `-X KEY=VALUE`.

Both may have the names of Apache Kafka's clients or of librdkafka, and variables of configuration providers (KIP-297);
-X wins. Every user of a machine sees what stands on command lines, so -X takes a password only as a variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..protocol.config_providers import resolve
from ..protocol.errors import ConfigError
from ..protocol.properties_text import properties_of
from .client_properties import SECRETS, librdkafka_properties

# Not PENSTOCK_…: such variables are properties of a node.
ENVIRONMENT_VARIABLE: Final = "KAFKA_COMMAND_CONFIG"
BOOTSTRAP_SERVERS: Final = "bootstrap.servers"


def load_client_properties(
    path: str | None, assignments: Mapping[str, str], *, environment: Mapping[str, str]
) -> dict[str, str]:
    """Properties in librdkafka's names; BOOTSTRAP_SERVERS is among them if the file has it. Raises ConfigError."""
    file_properties = {} if path is None else _read(path)
    merged = {**file_properties, **assignments}
    resolved = resolve(merged, files=_Disk(), environment=environment)
    for name in assignments:
        if name in SECRETS and name not in resolved.variables:
            raise ConfigError(
                f"-X {name}=… would show it to every user of this machine: put it into a file of properties for "
                f"--command-config, which only you can read, or name a variable there ({name}=${{file:…}}, ${{env:…}})."
            )
    return librdkafka_properties(resolved.values)


def _read(path: str) -> dict[str, str]:
    try:
        return properties_of(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8.") from None


class _Disk:
    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def is_directory(self, path: str) -> bool:
        return Path(path).is_dir()
