"""Where a node's properties come from: a Java properties file, the environment, the command line."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ...protocol.config_providers import ProviderFiles, resolve
from ...protocol.errors import ConfigError
from ...protocol.properties_text import properties_of
from .core_variables import refuse_core_variables
from .hidden_values import is_hidden
from .node_config import NodeConfig, load

ENVIRONMENT_PREFIX: Final = "PENSTOCK_"
_OF_THE_TERMINAL: Final = frozenset({"PENSTOCK_ADMIN"})
"""Commands find the HTTP administration by it; no property of a node."""
# As the environment of Kafka's container image: PENSTOCK_LOG_DIRS is log.dirs; two underscores are one, three a dash.
_UNDERSCORES: Final = {1: ".", 2: "_", 3: "-"}


def properties_of_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """Reads `key=value` texts of the command line. Raises ConfigError for one without a key or `=`."""
    properties = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set takes key=value, but got {assignment!r}.")
        properties[key.strip()] = value
    return properties


def properties_of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The properties that `PENSTOCK_…` variables give: PENSTOCK_NUM_PARTITIONS is num.partitions."""
    return {
        re.sub("_{1,3}", lambda run: _UNDERSCORES[len(run[0])], name.removeprefix(ENVIRONMENT_PREFIX).lower()): value
        for name, value in environment.items()
        if name.startswith(ENVIRONMENT_PREFIX) and name not in _OF_THE_TERMINAL
    }


def merge_properties(
    *, file_text: str | None = None, environment: Mapping[str, str], assignments: Sequence[str] = ()
) -> dict[str, str]:
    """All that was set, the command line over the environment over the file. Raises ConfigError."""
    return {
        **({} if file_text is None else properties_of(file_text)),
        **properties_of_environment(environment),
        **properties_of_assignments(assignments),
    }


def shown_secrets(assignments: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """The keys of passwords that stand on the command line, where every user of a machine can read them.

    `variables` are those properties that a configuration provider resolved.
    """
    return [name for name in properties_of_assignments(assignments) if is_hidden(name) and name not in variables]


def load_properties(
    properties: Mapping[str, str], *, files: ProviderFiles, environment: Mapping[str, str]
) -> NodeConfig:
    """The node of these properties, their variables resolved by `config.providers`. Raises ConfigError.

    Of several nodes on one machine `properties` are those of one (`core_variables.properties_of_core`).
    """
    refuse_core_variables(properties)
    resolved = resolve(properties, files=files, environment=environment)
    return load(resolved.values, variables=resolved.variables)
