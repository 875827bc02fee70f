"""Broker keys that Apache Kafka does not have, and that are dynamic configs only, never in server.properties.

broker.drained            whether the broker leads nothing that another in-sync replica can lead, and takes no new
                          replicas while enough other brokers are there (decision 19). Of one broker, never of all.
                          `until-restart`: its next process ends the drain by itself, once it has caught up.
"""

from collections.abc import Mapping
from typing import Any, Final

BROKER_DRAINED: Final = "broker.drained"
DRAINED: Final = "true"
DRAINED_UNTIL_RESTART: Final = "until-restart"
_DRAINED_VALUES: Final = (DRAINED, "false", DRAINED_UNTIL_RESTART)
OWN_KEYS: Final[Mapping[str, Mapping[str, Any]]] = {
    BROKER_DRAINED: {
        "type": "STRING",
        "default": "false",
        "validator": {
            "kind": "CaseInsensitiveValidString",
            "text": f"(case insensitive) [{', '.join(_DRAINED_VALUES)}]",
            "values": [value.upper() for value in _DRAINED_VALUES],
        },
        "importance": "medium",
        "update": "per-broker",
    },
}


def says_drained(values: Mapping[str, str]) -> bool:
    """Whether the dynamic configs of a broker say that it is drained."""
    return _drained(values) in (DRAINED, DRAINED_UNTIL_RESTART)


def says_drained_until_restart(values: Mapping[str, str]) -> bool:
    """Whether they say that the drain ends with the next start of the broker."""
    return _drained(values) == DRAINED_UNTIL_RESTART


def _drained(values: Mapping[str, str]) -> str:
    return values.get(BROKER_DRAINED, "").strip().lower()
