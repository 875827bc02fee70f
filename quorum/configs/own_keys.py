"""Broker keys that Apache Kafka does not have, and that are dynamic configs only, never in server.properties.

broker.drained            whether the broker leads nothing that another in-sync replica can lead, and takes no new
                          replicas while enough other brokers are there (decision 19). Of one broker, never of all.
"""

from collections.abc import Mapping
from typing import Any, Final

BROKER_DRAINED: Final = "broker.drained"
OWN_KEYS: Final[Mapping[str, Mapping[str, Any]]] = {
    BROKER_DRAINED: {"type": "BOOLEAN", "default": "false", "importance": "medium", "update": "per-broker"},
}


def says_drained(values: Mapping[str, str]) -> bool:
    """Whether the dynamic configs of a broker say that it is drained."""
    return values.get(BROKER_DRAINED, "").strip().lower() == "true"
