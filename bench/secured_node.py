"""A fresh node that has listeners with TLS and SASL beside its plain one.

The certificate is made by the command `openssl`: PEM, a key of P-256, signed by itself. The properties are those of
Apache Kafka, which Penstock reads.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from msgspec import Struct

from ..local.local_node import HOST
from ..local.ports import find_free
from ..local.readiness import wait_ready
from ..protocol.structs import replace
from .target import START_TIMEOUT_S, Listener, Target, node_pids, read_properties
from .topics import TIMEOUT_S, admin

PLAINTEXT, SSL = "PLAINTEXT", "SSL"
SASL_PLAINTEXT, SASL_SSL = "SASL_PLAINTEXT", "SASL_SSL"
_BESIDE: Final = (SSL, SASL_PLAINTEXT, SASL_SSL)
"""Listeners beside the plain one; each has the name of its protocol, as is Kafka's default."""
USER: Final = "alice"
PASSWORD: Final = "of-the-benchmark"
ITERATIONS: Final = 4096
"""What Apache Kafka's own tool takes."""
_JAAS: Final = "org.apache.kafka.common.security"
_OPENSSL: Final = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"),
    *("-subj", "/CN=penstock-bench", "-addext", f"subjectAltName=DNS:localhost,IP:{HOST}"),
)


class SecuredNode(Struct, frozen=True, kw_only=True):
    """It serves clients."""

    target: Target
    """By its plain listener."""
    ports: Mapping[str, int]
    """By listener."""
    authority: Path
    """Whom its certificate is from: the certificate itself."""

    def listener(self, name: str) -> Listener:
        """What librdkafka needs for a listener without SASL."""
        client = {"security.protocol": name.lower(), "ssl.ca.location": str(self.authority)} if name == SSL else {}
        return Listener(bootstrap=f"{HOST}:{self.ports[name]}", client=client)


@contextmanager
def secured(target: Target) -> Iterator[SecuredNode]:
    """Ended at the end of the context. Raises ClusterError when it does not serve clients in time."""
    assert target.fresh_node is not None, "only asked of targets that can be started"
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, target.fresh_node() as node:
        pair, authority = _certificate(Path(folder))
        generator = random.Random()
        ports = {name: find_free(generator) for name in _BESIDE}
        node.write_properties(_with(read_properties(node), ports, pair))
        node.start()
        wait_ready((node,), timeout_s=START_TIMEOUT_S)
        yield SecuredNode(
            target=replace(target, bootstrap=node.address, pids=node_pids(node)),
            ports={PLAINTEXT: node.port, **ports},
            authority=authority,
        )


def add_scram_user(target: Target, mechanism: str) -> None:
    """The user, with this mechanism. Raises KafkaException when that is refused."""
    info = ScramCredentialInfo(ScramMechanism[mechanism.replace("-", "_")], ITERATIONS)
    change = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
    client = admin(target.bootstrap)
    client.alter_user_scram_credentials([change])[USER].result(TIMEOUT_S)


def _with(properties: Mapping[str, str], ports: Mapping[str, int], pair: Path) -> dict[str, str]:
    """A node's properties and those of the listeners beside the plain one."""
    listeners = ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())
    protocols = properties.get("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT")
    advertised = properties.get("advertised.listeners")
    return {
        **properties,
        "listeners": f"{properties['listeners']},{listeners}",
        **({} if advertised is None else {"advertised.listeners": f"{advertised},{listeners}"}),
        "listener.security.protocol.map": ",".join((protocols, *(f"{name}:{name}" for name in ports))),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(pair),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        **{
            f"listener.name.{name.lower()}.{key}": value
            for name in (SASL_PLAINTEXT, SASL_SSL)
            for key, value in (
                ("plain.sasl.jaas.config", f'{_JAAS}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'),
                ("scram-sha-512.sasl.jaas.config", f"{_JAAS}.scram.ScramLoginModule required;"),
            )
        },
    }


def _certificate(folder: Path) -> tuple[Path, Path]:
    """The key with its certificate, and the certificate alone."""
    key, certificate, pair = folder / "key.pem", folder / "certificate.pem", folder / "pair.pem"
    try:
        command = (*_OPENSSL, "-keyout", str(key), "-out", str(certificate))
        subprocess.run(command, check=True, capture_output=True, timeout=START_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise click.ClickException(f"openssl made no certificate: {error}") from error
    pair.write_text(key.read_text() + certificate.read_text())
    return pair, certificate
