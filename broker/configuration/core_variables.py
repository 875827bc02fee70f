"""Variables of nodes that share one file of properties, a node for each core of a machine: `${core:BASE}`.

In node k of them, from 0 on, the variable is BASE + k:

    node.id=${core:101}
    listeners=PLAINTEXT://10.0.0.1:${core:9092},CONTROLLER://10.0.0.1:9093
    log.dirs=/data/${core:101}

It may be in any value, in those of other variables too: `${dir:/run/secrets:node-${core:101}}`. Beside it two keys that
are not set follow from the machine and the cluster: the rack is the host, so that no two replicas of a partition are on
one where there are enough of them, and a node is a controller when `controller.quorum.voters` names it.
"""

import re
from collections.abc import Mapping
from typing import Final

from ...protocol.config_providers import CONFIG_PROVIDERS
from ...protocol.errors import ConfigError
from ...protocol.ids import NodeId
from ...quorum.metadata.voters import parse_voters

PROVIDER: Final = "core"
RACK: Final = "broker.rack"
_ROLES: Final = "process.roles"
_VOTERS: Final = "controller.quorum.voters"
_VARIABLE = re.compile(r"\$\{core:(?P<base>[^}]*)\}")


def properties_of_core(properties: Mapping[str, str], core: int, *, host_name: str) -> dict[str, str]:
    """What the node of that core is told, from what all are told. Raises ConfigError."""
    if _has_own_provider(properties):
        raise ConfigError(f"{CONFIG_PROVIDERS} names {PROVIDER}, which is the variable of nodes per core: rename it.")
    told = {name: _replaced(name, text, core) for name, text in properties.items()}
    told.setdefault(RACK, host_name)
    if _ROLES not in told and told.get(_VOTERS, "").strip():
        told[_ROLES] = "broker,controller" if _node_id(told) in parse_voters(told[_VOTERS].split(",")) else "broker"
    return told


def refuse_core_variables(properties: Mapping[str, str]) -> None:
    """Of a node that is alone: the text of a variable would be taken for a value. Raises ConfigError."""
    if _has_own_provider(properties):
        return
    for name, text in properties.items():
        match = _VARIABLE.search(text)
        if match is not None:
            raise ConfigError(f"{name} has the variable {match[0]}, which is for nodes that start with --per-core.")


def _has_own_provider(properties: Mapping[str, str]) -> bool:
    return PROVIDER in (name.strip() for name in properties.get(CONFIG_PROVIDERS, "").split(","))


def _replaced(name: str, text: str, core: int) -> str:
    def value(match: re.Match[str]) -> str:
        base = match["base"].strip()
        # Digits of other scripts, too, are decimal.
        if not base.isascii() or not base.isdecimal():
            raise ConfigError(f"{name} has the variable {match[0]}, but its base is no number from 0 on.")
        return str(int(base) + core)

    return _VARIABLE.sub(value, text)


def _node_id(properties: Mapping[str, str]) -> NodeId | None:
    """None for what is no id: loading the properties refuses it."""
    text = properties.get("node.id", properties.get("broker.id", "")).strip()
    return NodeId(int(text)) if text.isascii() and text.isdecimal() else None
