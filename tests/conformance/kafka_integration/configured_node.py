"""A broker outside a test's process, with the listeners and properties that the test gives its own broker."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from penstock.local.local_node import HOST, LocalNode
from penstock.local.ports import find_free

# Of the harness: where it asks whether the node is ready, and everything may be done.
HARNESS: Final = "HARNESS"
PRINCIPAL: Final = "User:harness"
# The same for a user who has proved who he is, because only those are told of tokens.
HARNESS_SASL: Final = "HARNESS_SASL"
_USER: Final = "harness"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
# Apache Kafka's, and an error here.
_LEFT_OUT: Final = frozenset(
    {"file.delete.delay.ms", "log.unclean.leader.election.enable", "unstable.api.versions.enable"}
)


class ConfiguredNode:
    """Its ports, by listener, and what it is told."""

    def __init__(
        self, request: Mapping[str, Any], told: Mapping[str, Any], node: LocalNode, generator: random.Random
    ) -> None:
        """`told` is of this broker, the rest of the request of all."""
        self._request = request
        self._told = told
        self.node = node
        self._has_sasl = any(protocol.startswith("SASL") for protocol in request["listeners"].values())
        self.ports = {name: find_free(generator) for name in request["listeners"]}
        self._admin_port = find_free(generator)
        self._sasl_port = find_free(generator) if self._has_sasl else 0

    def principals(self) -> str:
        """By listener, for `group_principals`."""
        return json.dumps({**self._request["principals"], HARNESS: PRINCIPAL})

    def settings(self) -> dict[str, str]:
        listeners = {HARNESS: self.node.port, **self.ports}
        protocols = {HARNESS: "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **self._request["listeners"]}
        own = {}
        if self._has_sasl:
            listeners[HARNESS_SASL], protocols[HARNESS_SASL] = self._sasl_port, "SASL_PLAINTEXT"
            prefix = f"listener.name.{HARNESS_SASL.lower()}"
            own = {
                f"{prefix}.sasl.enabled.mechanisms": "PLAIN",
                f"{prefix}.plain.sasl.jaas.config": f'{_PLAIN} user_{_USER}="{_USER}";',
            }
        return {
            **self._asked(),
            **own,
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in listeners.items()),
            # The name that is in the certificates of the tests.
            "advertised.listeners": ",".join(f"{name}://localhost:{port}" for name, port in listeners.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "inter.broker.listener.name": HARNESS,
            "admin.listeners": f"http://{HOST}:{self._admin_port}",
            "log.dirs": self.log_directories(),
        }

    def controller_settings(self, listener: str) -> dict[str, str]:
        """Of a controller beside the brokers."""
        return {
            **self._asked(),
            "listeners": listener,
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}"
                for name, protocol in {**self._request["listeners"], "CONTROLLER": "PLAINTEXT"}.items()
            ),
        }

    def _asked(self) -> dict[str, str]:
        asked = {key: value for key, value in self._told["properties"].items() if key not in _LEFT_OUT}
        if scram := self._request["scram"]:
            asked["cluster.scram.credentials"] = ",".join(scram)
        return asked

    def log_directories(self) -> str:
        """The value of log.dirs."""
        data: Path = self.node.data
        return ",".join([str(data), *(f"{data}-disk-{disk}" for disk in range(2, int(self._told["disks"]) + 1))])

    def metrics(self) -> str:
        """Where its metrics are read."""
        return f"http://{HOST}:{self._admin_port}/metrics"

    def client(self) -> dict[str, str]:
        """What an administrator of the harness is told."""
        if not self._has_sasl:
            return {"bootstrap.servers": self.node.address}
        return {
            "bootstrap.servers": f"{HOST}:{self._sasl_port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{_PLAIN} username="{_USER}" password="{_USER}";',
        }
